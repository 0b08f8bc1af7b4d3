import { render } from 'preact';
import { App } from './app.tsx';
import { startTicking } from './data/now.ts';
import './style/tokens.css';
import './style/page.css';
import './style/parts.css';

startTicking();
render(<App />, document.getElementById('page') as HTMLElement);
