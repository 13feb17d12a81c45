// Where the user writes: grows with the text, completes, takes pictures, and knows what to do while Hermes works.
import { useComposer } from "../../app/keys.js";
import { Button, Icon, toast } from "../../app/parts.js";
import { html, kept, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../../app/ui.js";
import { answerQuestion } from "./asking.js";
import { called } from "./commands.js";
import { Completer, knownSkills, wordAt } from "./completion.js";
import { MOST, picturesIn, readPicture } from "./pictures.js";

const ANSWER = { name: "answer", label: "Answer", title: "Hermes is waiting for your answer" };
const DELIVERIES = [
  { name: "queue", label: "After this turn", title: "It waits until Hermes is done" },
  { name: "steer", label: "Into this turn", title: "The model hears it while it works (Ctrl Enter)" },
  { name: "interrupt", label: "Instead", title: "Stops the turn and is answered next" },
];

/**
 * `chat`: {id, send, stop, ...}; `running`: a turn runs. `question`: {session, call} that waits for words of the user.
 * `filled`: {text, images} put into it from outside.
 */
export function Composer({ chat, running, stopping, question = null, filled }) {
  const [text, setText] = useState(() => kept.get(`draft.${chat.id || "new"}`) ?? "");
  const [images, setImages] = useState([]);
  const [delivery, setDelivery] = useState("queue");
  const [aside, setAside] = useState(""); // the question that the user does not answer now
  const [over, setOver] = useState(false);
  const area = useRef();
  const files = useRef();
  const looking = useRef(false);
  const completion = useCompletion(chat.id, area, text, setText);
  useComposer(area);
  useEffect(() => {
    kept.set(`draft.${chat.id || "new"}`, text);
  }, [text, chat.id]);
  useEffect(() => {
    if (!filled) return;
    setText(filled.text);
    setImages(filled.images ?? []);
    area.current.focus();
  }, [filled]);
  useEffect(() => {
    if (matchMedia("(hover: hover)").matches && document.activeElement === document.body) area.current.focus();
  }, [chat.id]);
  useLayoutEffect(() => {
    area.current.style.height = "auto";
    area.current.style.height = `${Math.min(area.current.scrollHeight + 2, innerHeight * 0.4)}px`;
  }, [text]);

  const add = async (list) => {
    for (const file of list) {
      try {
        const picture = await readPicture(file);
        setImages((now) => (now.length < MOST ? [...now, picture] : now));
      } catch (error) {
        toast(error.message, "bad");
      }
    }
  };
  const clear = () => {
    setText("");
    setImages([]);
    kept.set(`draft.${chat.id || "new"}`, null); // at once: sending may take this input away
  };
  const answers = question && aside !== question.call;
  const way = answers ? "answer" : running ? delivery : "queue";
  const ways = [...(question ? [ANSWER] : []), ...(running ? DELIVERIES : [])];
  const choose = (name) => {
    setAside(name === "answer" ? "" : question?.call ?? "");
    if (name !== "answer") setDelivery(name);
  };
  const send = async (how = way) => {
    const words = text.trim();
    if ((!words && !images.length) || looking.current) return;
    const call = words.startsWith("/") && !images.length ? await meant(words) : null;
    if (call?.unknown) return void toast(call.unknown, "bad");
    if (call?.command && !chat.id && !call.command.alone) {
      return void toast("There is no session yet; say something first.");
    }
    if (how === "answer" && !call?.command) return answer(words);
    clear();
    if (call?.command) return void call.command.run(chat, call.words);
    chat.send(call?.line ?? words, how, images);
  };
  const answer = async (words) => {
    if (images.length) {
      return void toast("An answer can't contain pictures. Remove them, or send them after this turn.");
    }
    clear();
    if (!(await answerQuestion(question, words))) setText((now) => now || words);
  };
  const meant = async (words) => {
    looking.current = true; // a second Enter must not say it twice
    try {
      return called(words, (await knownSkills()).map((one) => one.name));
    } finally {
      looking.current = false;
    }
  };
  const press = (event) => {
    if (event.isComposing || completion.press(event)) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      send(running ? "steer" : "queue");
    } else if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      send();
    } else if (event.key === "ArrowUp" && !text) {
      const last = chat.lastSaid();
      if (last) {
        event.preventDefault();
        setText(last);
      }
    }
  };
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    add(picturesIn(event.dataTransfer));
  };
  const paste = (event) => {
    const found = picturesIn(event.clipboardData);
    if (!found.length) return;
    event.preventDefault();
    add(found);
  };
  const can = text.trim() || images.length;
  return html`<form class=${`composer ${over ? "over" : ""}`} onSubmit=${(event) => (event.preventDefault(), send())}
    onDragOver=${(event) => (event.preventDefault(), setOver(true))} onDragLeave=${() => setOver(false)} onDrop=${drop}>
    <${Completions} completion=${completion} />
    ${ways.length > 1 && html`<div class="deliveries" role="radiogroup" aria-label="How to send it">
      ${ways.map((one) => html`<label key=${one.name} title=${one.title}><input type="radio" name="delivery"
        value=${one.name} checked=${way === one.name} onChange=${() => choose(one.name)} /><span>
          ${one.label}</span></label>`)}</div>`}
    ${images.length > 0 && html`<ul class="attached">${images.map((image, index) =>
      html`<li key=${image.url}><img src=${image.url} alt=${image.name || `Picture ${index + 1}`} /><${Button}
        kind="quiet" icon="close" label=${`Remove picture ${index + 1}`}
          onClick=${() => setImages(images.filter((one) => one !== image))} /></li>`)}</ul>`}
    <textarea ref=${area} rows="1" dir="auto" aria-label="Message"
      placeholder=${answers ? "Your answer" : running ? "Say something while Hermes works" :
        "Ask Hermes anything. / for commands, @ for files"}
        value=${text}
      role="combobox" aria-expanded=${completion.rows.length ? "true" : "false"} aria-controls="completions"
        aria-autocomplete="list" aria-activedescendant=${completion.rows.length ? `completion-${completion.at}` :
          undefined}
      onInput=${(event) => (setText(event.target.value), completion.look(event.target))} onKeyDown=${press}
        onPaste=${paste} onClick=${(event) => completion.look(event.target)} onBlur=${completion.close} />
    <div class="composer-row">
      <input ref=${files} type="file" accept="image/*" multiple hidden
        onChange=${(event) => (add(event.target.files), (event.target.value = ""))} />
      <${Button} kind="quiet" icon="attach" label="Add pictures" onClick=${() => files.current.click()} />
      ${chat.extras}
      <span class="spring" />
      ${running && html`<${Button} icon="stop" class="stop" disabled=${stopping} onClick=${chat.stop}>
        ${stopping ? "Stopping" : "Stop"}<kbd aria-hidden="true">Esc</kbd><//>`}
      <button type="submit" class="button primary send" aria-label="Send" title="Send (Enter)" disabled=${!can}>
        <${Icon} name="send" /></button>
    </div>
  </form>`;
}

function Completions({ completion }) {
  const list = useRef();
  useEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }),
    [completion.at, completion.rows]);
  return html`<ul id="completions" class="completions" role="listbox" aria-label="Completions"
    hidden=${!completion.rows.length} ref=${list}>${completion.rows.map(
    (row, index) => html`<li key=${row.label} id=${`completion-${index}`} role="option"
      aria-selected=${index === completion.at ? "true" : "false"}
        onMouseDown=${(event) => (event.preventDefault(), completion.take(index))}>
      <span class="mono">${row.label}</span>${row.value && html`<span class="muted mono">${row.value}</span>`}<span
        class="muted completion-note">${row.note}</span></li>`,
  )}</ul>`;
}

/** The list below the cursor: what is in it, which row is chosen, and the keys that drive it. */
function useCompletion(session, area, text, setText) {
  const completer = useMemo(() => new Completer(session), [session]);
  const [rows, setRows] = useState([]);
  const [at, setAt] = useState(0);
  const place = useRef(null);
  const close = () => {
    place.current = null;
    setRows([]);
  };
  const look = async (element) => {
    place.current = wordAt(element.value, element.selectionStart);
    if (!place.current) return close();
    const found = await completer.find(place.current);
    if (found === null || !place.current) return undefined;
    setAt(0);
    return setRows(found);
  };
  const take = (index) => {
    const row = rows[index];
    const { start, end } = place.current;
    close();
    area.current.focus();
    area.current.setRangeText(row.insert, start, end, "end"); // at once: the next key may come before the next frame
    setText(area.current.value);
    if (row.again) look(area.current);
  };
  const press = (event) => {
    if (!rows.length || !place.current) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const exact = rows.some((row) => row.label === text.trim());
    if (step) setAt((rows.length + at + step) % rows.length);
    else if (event.key === "Escape") close();
    else if (event.key === "Tab" || (event.key === "Enter" && !exact && !event.shiftKey)) take(at);
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  return { rows, at, look, take, press, close };
}
