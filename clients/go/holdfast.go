// Package holdfast holds leases of a Holdfast server over HTTP. One file, no dependencies.
//
//	lease, err := holdfast.Client{URLs: urls, Token: token}.Acquire(ctx, "camera-3", options)
//	defer lease.Release()
//	for lease.Held() { step(lease.Context(), lease.Fence) }
//
// The holder is this process, not the server. A lease counts its own deadline, from when the last
// request that the server confirmed was SENT, and ends here before it ends in the store. A write
// that is on its way cannot be stopped: pass Fence on, and refuse older fences there.
package holdfast

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const waitSlice, retryPause = 10 * time.Second, 200 * time.Millisecond

// Client knows the addresses of one fleet's API processes. Any of them serves any request.
type Client struct {
	URLs  []string
	Token string
}

// Options of a lease. TTL is required; without Wait, a key that is held is an error at once.
type Options struct{ TTL, Wait time.Duration }

// Error is a problem that the server reported, such as LEASE_HELD or STORE_QUARANTINED.
type Error struct {
	Status               int
	Code, Detail, Holder string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d): %s", e.Code, e.Status, e.Detail) }

type reply struct {
	Error
	Fence    string
	Released bool
}

// Lease is one lease of this process. Context ends with it.
type Lease struct {
	Key, Holder      string
	Fence            int64
	client           Client
	ttl, valid, jump time.Duration
	ctx              context.Context
	cancel           context.CancelFunc
	mutex            sync.Mutex
	sent             time.Time // when the last confirmed request was sent; on both clocks
	isOver           bool
}

// Acquire returns the lease, or an *Error with code LEASE_HELD after options.Wait.
func (c Client) Acquire(ctx context.Context, key string, o Options) (*Lease, error) {
	if o.TTL < time.Second {
		return nil, fmt.Errorf("the TTL is %v: it has to be at least 1 s", o.TTL)
	}
	name := make([]byte, 16)
	_, _ = rand.Read(name)
	guard := between(100*time.Millisecond, o.TTL/20, 1500*time.Millisecond)
	l := &Lease{Key: key, Holder: fmt.Sprintf("go-%x", name), client: c, ttl: o.TTL}
	l.valid, l.jump = o.TTL-guard, guard/2
	until := time.Now().Add(o.Wait)
	for {
		left := between(0, time.Until(until), waitSlice)
		body := map[string]any{"holder": l.Holder, "ttl": o.TTL.Milliseconds(), "wait": left.Milliseconds()}
		sent := time.Now()
		got, err := l.post(ctx, "", body, between(0, o.TTL/2, 5*time.Second)+left)
		if err == nil {
			l.Fence, _ = strconv.ParseInt(got.Fence, 10, 64)
			l.sent = sent
			l.ctx, l.cancel = context.WithCancel(context.Background())
			// A request that waited was sent long before the grant: only a renewal is worth its time.
			if time.Since(sent) > l.ttl/3 && !l.renew(true) {
				return nil, fmt.Errorf("lease '%s' ended before it could be used", key)
			}
			go l.keep()
			return l, nil
		}
		isFinal := got.Code != "" && got.Code != "LEASE_HELD" && got.Code != "STORE_QUARANTINED"
		if isFinal || left == 0 || ctx.Err() != nil {
			return nil, err
		}
		time.Sleep(retryPause)
	}
}

// Held says whether the next step may begin. It asks no server: call it before each step.
func (l *Lease) Held() bool { return l.Remaining() > 0 }

// Context is cancelled when the lease is over. A blocked process notices late: ask Held, too.
func (l *Lease) Context() context.Context { return l.ctx }

// Remaining is how long the lease is good for without another renewal; 0 if it is over.
func (l *Lease) Remaining() time.Duration {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	elapsed, ahead := l.elapsed()
	// A clock that was set back may hide a sleep: the lease waits for a renewal.
	if l.isOver || ahead < -l.jump || elapsed >= l.valid {
		return 0
	}
	return l.valid - elapsed
}

// elapsed is the time since the last confirmed request was sent, and how far the clocks disagree.
func (l *Lease) elapsed() (time.Duration, time.Duration) {
	elapsed := time.Since(l.sent)
	ahead := time.Now().Round(0).Sub(l.sent.Round(0)) - elapsed
	// The monotonic clock stops while the host sleeps; the lease in the store does not.
	if ahead > l.jump {
		elapsed += ahead
	}
	return elapsed, ahead
}

// Release ends the lease here at once, then in the store. It reports whether the store had it.
func (l *Lease) Release() bool {
	l.mutex.Lock()
	l.isOver = true
	l.cancel()
	l.mutex.Unlock()
	got, _ := l.post(context.Background(), "/release", l.own(), 5*time.Second)
	return got.Released
}

func (l *Lease) keep() {
	pause := l.ttl / 3
	for {
		// It wakes for the deadline as well, so that the context ends in time.
		if left := l.Remaining(); left > 0 && left < pause {
			pause = left
		}
		select {
		case <-l.ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = retryPause
		if l.renew(false) {
			pause = l.ttl / 3
		}
	}
}

func (l *Lease) renew(isFirst bool) bool {
	sent, body := time.Now(), l.own()
	body["ttl"] = l.ttl.Milliseconds()
	got, err := l.post(l.ctx, "/renew", body, between(0, l.ttl/6, 5*time.Second))
	l.mutex.Lock()
	defer l.mutex.Unlock()
	// An answer that comes after the deadline revives nothing: the work has been told to stop.
	if elapsed, _ := l.elapsed(); got.Code == "LEASE_NOT_HELD" || (!isFirst && elapsed >= l.valid) {
		l.isOver = true
		l.cancel()
	}
	if err == nil && !l.isOver {
		l.sent = sent
	}
	return err == nil && !l.isOver
}

func (l *Lease) own() map[string]any {
	return map[string]any{"holder": l.Holder, "fence": strconv.FormatInt(l.Fence, 10)}
}

// post sends to the first server that answers.
func (l *Lease) post(ctx context.Context, path string, body any, timeout time.Duration) (got reply, err error) {
	data, _ := json.Marshal(body)
	for _, base := range l.client.URLs {
		to := strings.TrimRight(base, "/") + "/api/v3/leases/" + url.PathEscape(l.Key) + path
		got, err = l.send(ctx, to, data, timeout)
		if err == nil && got.Code != "NOT_READY" && got.Code != "STORE_UNAVAILABLE" && got.Code != "OUTCOME_UNKNOWN" {
			break
		}
	}
	if err == nil && got.Code != "" {
		err = &got.Error
	}
	return got, err
}

func (l *Lease) send(ctx context.Context, to string, data []byte, timeout time.Duration) (got reply, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "POST", to, bytes.NewReader(data))
	if err != nil {
		return got, err
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + l.client.Token}}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return got, err
	}
	defer response.Body.Close()
	return got, json.NewDecoder(response.Body).Decode(&got)
}

func between(least, value, most time.Duration) time.Duration {
	if value < least {
		return least
	} else if value > most {
		return most
	}
	return value
}
