import { render } from 'preact';
import { App } from './app.tsx';
import './style/tokens.css';
import './style/page.css';
import './style/parts.css';

render(<App />, document.getElementById('page') as HTMLElement);
