// A program with a lease over HTTP, told what to do on stdin: a JSON string per line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"holdfast"
)

func say(facts map[string]any) {
	line, _ := json.Marshal(facts)
	fmt.Println(string(line))
}

// now is the seconds since boot: one clock for all processes of the host.
func now() float64 {
	text, _ := os.ReadFile("/proc/uptime")
	up, _ := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	return up
}

func main() {
	client := holdfast.Client{URLs: strings.Split(os.Args[1], ","), Token: os.Args[2]}
	var lease *holdfast.Lease
	answer := func() {
		say(map[string]any{"event": "answer", "isHeld": lease.Held(), "at": now()})
	}
	say(map[string]any{"event": "ready"})
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var text string
		_ = json.Unmarshal(lines.Bytes(), &text)
		told := strings.Fields(text)
		seconds := func(i int) time.Duration {
			value, _ := strconv.ParseFloat(told[i], 64)
			return time.Duration(value * float64(time.Second))
		}
		switch told[0] {
		case "acquire":
			options := holdfast.Options{TTL: seconds(1), Wait: seconds(2)}
			got, err := client.Acquire(context.Background(), os.Args[3], options)
			var problem *holdfast.Error
			if errors.As(err, &problem) {
				say(map[string]any{"event": "failed", "code": problem.Code})
			} else if err != nil {
				say(map[string]any{"event": "failed", "why": err.Error()})
			} else {
				lease = got
				say(map[string]any{"event": "acquired", "fence": lease.Fence, "isHeld": lease.Held(), "at": now()})
			}
		case "ask":
			answer()
		case "watch":
			say(map[string]any{"event": "watching"})
			last := 0.0
			for lease.Held() && lease.Context().Err() == nil {
				last = now()
				time.Sleep(2 * time.Millisecond)
			}
			say(map[string]any{"event": "over", "lastHeldAt": last})
		case "block":
			time.Sleep(seconds(1))
			answer()
		case "release":
			say(map[string]any{"event": "released", "released": lease.Release()})
		}
	}
}
