// The message input: grows with the text, completes, accepts pictures, and offers delivery choices while Hermes works.
/**
 * @import {
 *   AttachedFile, AttachedPicture, ChatActions, Delivery, FieldEvent, Filled, OpenQuestion, Ref,
 * } from "../../types/page.d.ts"
 */
/** @import { Completion, Place } from "./completion.js" */
/** @import { Heard } from "./voice.js" */
import { errorText } from "../../app/api.js";
import { isFocusFree } from "../../app/kept_focus.js";
import { useComposer } from "../../app/keys.js";
import { Button, Icon, size, toast } from "../../app/parts.js";
import { t } from "../../app/translation.js";
import {
  afterFrame,
  html,
  kept,
  useEffect,
  useElement,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "../../app/ui.js";
import { answerQuestion } from "./answers.js";
import { called } from "./commands.js";
import { Completer, knownSkills, wordAt } from "./completion.js";
import { EarlierChips, keepEarlier, useEarlier } from "./earlier_attachments.js";
import { isPicture, MOST, readFile, readPicture } from "./pictures.js";
import { understoodOrKept, VoiceButtons, VoiceStatus } from "./voice.js";

const PLACEHOLDER = matchMedia("(max-width: 30rem)").matches
  ? t("Ask Hermes anything")
  : t("Ask Hermes anything. / for commands, @ for files");
/** @type {Way} */
const ANSWER = {
  name: "answer",
  label: t("Answer"),
  title: t("Hermes is waiting for your answer"),
};
/** @type {Way[]} */
const DELIVERIES = [
  {
    name: "queue",
    label: t("After this turn"),
    title: t("Sends the message when this turn has ended"),
  },
  {
    name: "steer",
    label: t("During this turn"),
    title: t("The model reads it while it works (Ctrl Enter)"),
  },
  { name: "interrupt", label: t("Instead"), title: t("Stops this turn and sends the message") },
];

const GROWS_BY_ITSELF = CSS.supports("field-sizing", "content");
const DRAFT_PAUSE_MS = 300; // without a key before a draft is stored: storing it can take longer than a frame

/**
 * @param {AttachedPicture} image
 * @param {number} index
 */
function pictureName(image, index) {
  return image.name || t("Picture {number}", { number: index + 1 });
}

/** @typedef {{ name: Delivery | "answer", label: string, title: string }} Way */

/**
 * @typedef {object} ComposerProps
 * @property {ChatActions} chat
 * @property {boolean} [running]
 * @property {boolean} [stopping]
 * @property {OpenQuestion | null} [question]
 * @property {Filled | null} filled
 */

/**
 * `chat`: {id, send, stop, ...}; `running`: a turn runs. `question`: {session, call} that waits for words of the user.
 * `filled` is put into it from outside.
 * @param {ComposerProps} props
 */
export function Composer({ chat, running, stopping, question = null, filled }) {
  const [text, setText] = useState(() => kept.get(`draft.${chat.id || "new"}`) ?? "");
  const [images, setImages] = useState(/** @type {AttachedPicture[]} */ ([]));
  const [documents, setDocuments] = useState(/** @type {AttachedFile[]} */ ([]));
  const [recordings, setRecordings] = useKeptRecordings(`recordings.${chat.id || "new"}`);
  const [earlier, setEarlier] = useEarlier(chat.id);
  const [delivery, setDelivery] = useState(/** @type {Delivery} */ ("queue"));
  const [aside, setAside] = useState(""); // the question that the user does not answer now
  const [over, setOver] = useState(false);
  const area = /** @type {Ref<HTMLTextAreaElement>} */ (useElement());
  const files = /** @type {Ref<HTMLInputElement>} */ (useElement());
  const looking = useRef(false);
  const completion = useCompletion(chat.id, area, text, setText);
  useComposer(area);
  const forgetDraft = useKeptDraft(`draft.${chat.id || "new"}`, text);
  useEffect(() => {
    if (!filled) return;
    setText(filled.text);
    setImages(filled.images ?? []);
    setDocuments(filled.files ?? []);
    setRecordings(filled.recordings ?? []);
    setEarlier(filled.earlier ?? null);
    area.current.focus();
  }, [filled]);
  useEffect(() => {
    if (!matchMedia("(hover: hover)").matches) return undefined;
    // Behind the frame that lays the page out: a focus before it would do that in this task.
    return afterFrame(() => isFocusFree() && area.current.focus());
  }, [chat.id]);
  useLayoutEffect(() => {
    if (GROWS_BY_ITSELF) return;
    area.current.style.height = "auto";
    area.current.style.height = `${Math.min(area.current.scrollHeight + 2, innerHeight * 0.4)}px`;
  }, [text]);

  /** @param {Heard} heard */
  const hear = ({ text: words, recording }) => {
    setText((now) => (now.trim() ? `${now.trimEnd()} ${words}` : words));
    setRecordings((now) => [...now.filter((one) => one !== recording), recording]);
    area.current.focus();
  };
  /** @param {File} file one of the same name is replaced */
  const attach = async (file) => {
    const one = await readFile(file);
    setDocuments((now) => {
      const others = now.filter((other) => other.name !== one.name);
      return others.length < MOST ? [...others, one] : now;
    });
  };
  /** @param {Iterable<File>} list */
  const add = async (list) => {
    for (const file of list) {
      try {
        if (file.type.startsWith("audio/")) {
          const heard = await understoodOrKept(file, attach);
          if (heard) hear(heard);
        } else if (isPicture(file)) {
          const picture = await readPicture(file);
          setImages((now) => (now.length < MOST ? [...now, picture] : now));
        } else {
          await attach(file);
        }
      } catch (error) {
        toast(errorText(error), "bad");
      }
    }
  };
  const clear = () => {
    setText("");
    setImages([]);
    setDocuments([]);
    setRecordings([]);
    setEarlier(null);
    keepEarlier(chat.id, null);
    forgetDraft(); // at once: sending may take this input away
  };
  const hasEarlier = Boolean(earlier && earlier.images.length + earlier.files.length);
  const hasFiles = images.length > 0 || documents.length > 0 || hasEarlier;
  const answers = question && aside !== question.call;
  const way = answers ? "answer" : running ? delivery : "queue";
  const ways = [...(question ? [ANSWER] : []), ...(running ? DELIVERIES : [])];
  /** @param {Way["name"]} name */
  const choose = (name) => {
    setAside(name === "answer" ? "" : (question?.call ?? ""));
    if (name !== "answer") setDelivery(name);
  };
  /** @param {Way["name"]} [how] */
  const send = async (how = way) => {
    const words = text.trim();
    if ((!words && !hasFiles) || looking.current) return;
    const call = words.startsWith("/") && !hasFiles ? await meant(words) : null;
    if (call?.unknown) return void toast(call.unknown, "bad");
    if (call?.command && !chat.id && !call.command.alone) {
      return void toast(t("There is no session yet. Send a message first."));
    }
    if (how === "answer" && !call?.command) return answer(words);
    clear();
    if (call?.command) return void call.command.run(chat, call.words ?? "");
    const delivered = how === "answer" ? "queue" : how;
    chat.send(call?.line ?? words, delivered, images, documents, recordings, earlier);
  };
  /** @param {string} words */
  const answer = async (words) => {
    if (hasFiles) {
      return void toast(
        t("An answer can't contain files. Remove them, or send them after this turn."),
      );
    }
    clear();
    if (!question || (await answerQuestion(question, words, undefined, recordings))) return;
    setText((now) => now || words);
    setRecordings(recordings);
  };
  /** @param {string} words */
  const meant = async (words) => {
    looking.current = true; // a second Enter must not send it twice
    try {
      return called(
        words,
        (await knownSkills()).map((one) => one.name),
      );
    } finally {
      looking.current = false;
    }
  };
  /** @param {KeyboardEvent} event */
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
  /** @param {Heard} heard @param {Delivery} how */
  const sayAtOnce = (heard, how) => chat.send(heard.text, how, [], [], [heard.recording]);
  useDrop(setOver, add);
  /** @param {ClipboardEvent} event */
  const paste = (event) => {
    const found = [...(event.clipboardData?.files ?? [])];
    if (!found.length) return;
    event.preventDefault();
    add(found);
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    send();
  };
  const chooseFiles = (/** @type {FieldEvent} */ event) => {
    add([...(event.target.files ?? [])]);
    event.target.value = "";
  };
  const type = (/** @type {FieldEvent} */ event) => {
    setText(event.target.value);
    completion.look(event.target);
  };
  const can = text.trim() || hasFiles;
  return html`<form class=${`composer ${over ? "over" : ""}`} onSubmit=${submit}>
    ${over && html`<p class="drop-hint" role="status">${t("Drop files to attach them")}</p>`}
    <${Completions} completion=${completion} />
    ${
      ways.length > 1 &&
      html`<div class="deliveries" role="radiogroup" aria-label=${t("When to send it")}>
      ${ways.map(
        (one) => html`<label key=${one.name} title=${one.title}><input type="radio" name="delivery"
        value=${one.name} checked=${way === one.name} onChange=${() => choose(one.name)} /><span>
          ${one.label}</span></label>`,
      )}</div>`
    }
    ${
      images.length > 0 &&
      html`<ul class="attached">${images.map(
        (image, index) =>
          html`<li key=${image.url}><img src=${image.url} alt=${pictureName(image, index)} /><${Button}
        kind="quiet" icon="close" label=${t("Remove {name}", { name: pictureName(image, index) })}
          onClick=${() => setImages(images.filter((one) => one !== image))} /></li>`,
      )}</ul>`
    }
    ${
      documents.length > 0 &&
      html`<ul class="attached-files">${documents.map(
        (
          file,
        ) => html`<li key=${file.name} class="tag"><${Icon} name="file" size=${14} /><span>${file.name}</span>
          <span class="muted">${size(file.bytes)}</span><${Button} kind="quiet" icon="close"
            label=${t("Remove {name}", { name: file.name })}
            onClick=${() => setDocuments(documents.filter((one) => one !== file))} /></li>`,
      )}</ul>`
    }
    ${earlier && html`<${EarlierChips} earlier=${earlier} onChange=${setEarlier} />`}
    ${
      recordings.length > 0 &&
      html`<ul class="attached-files">${recordings.map(
        (
          one,
        ) => html`<li key=${one} class="tag"><${Icon} name="mic" size=${14} /><span>${t("Recording")}</span>
          <${Button} kind="quiet" icon="close" label=${t("Remove {name}", { name: t("Recording") })}
            onClick=${() => setRecordings(recordings.filter((other) => other !== one))} /></li>`,
      )}</ul>`
    }
    <textarea ref=${area} rows="1" dir="auto" aria-label=${t("Message")}
      placeholder=${
        answers ? t("Your answer") : running ? t("Message Hermes while it works") : PLACEHOLDER
      }
        value=${text}
      role="combobox" aria-expanded=${completion.rows.length ? "true" : "false"} aria-controls="completions"
        aria-autocomplete="list" aria-activedescendant=${
          completion.rows.length ? `completion-${completion.at}` : undefined
        }
      onInput=${type} onKeyDown=${press}
        onPaste=${paste} onClick=${(event) => completion.look(event.target)} onBlur=${completion.close} />
    <div class="composer-row">
      <input ref=${files} type="file" multiple hidden
        onChange=${chooseFiles} />
      <${Button} kind="quiet" icon="attach" label=${t("Attach files")} onClick=${() => files.current.click()} />
      <${VoiceButtons} fill=${hear} keep=${attach} send=${sayAtOnce} isRunning=${() => Boolean(running)}
        transcript=${chat.transcript} />
      <${VoiceStatus} />
      <span class="spring" />
      ${
        running &&
        html`<${Button} icon="stop" class="stop" disabled=${stopping} onClick=${chat.stop}>
        ${stopping ? t("Stopping") : t("Stop")}<kbd aria-hidden="true">Esc</kbd><//>`
      }
      <button type="submit" class="button primary send" aria-label=${t("Send")}
        title=${t("Send (Enter)")} disabled=${!can}>
        <${Icon} name="send" /></button>
    </div>
  </form>`;
}

/**
 * Files can be dropped anywhere on the page.
 * @param {(isOver: boolean) => void} setOver
 * @param {(files: Iterable<File>) => void} add
 */
function useDrop(setOver, add) {
  const latest = useRef(add);
  latest.current = add;
  useEffect(() => {
    const holdsFiles = (/** @type {DragEvent} */ event) =>
      event.dataTransfer?.types.includes("Files") ?? false;
    const over = (/** @type {DragEvent} */ event) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (/** @type {DragEvent} */ event) =>
      event.relatedTarget === null && setOver(false);
    const drop = (/** @type {DragEvent} */ event) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      setOver(false);
      latest.current([...(event.dataTransfer?.files ?? [])]);
    };
    addEventListener("dragover", over);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  }, []);
}

/** @param {{ completion: ReturnType<typeof useCompletion> }} props */
function Completions({ completion }) {
  const list = /** @type {Ref<HTMLElement>} */ (useElement());
  useEffect(
    () => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }),
    [completion.at, completion.rows],
  );
  const take = (/** @type {number} */ index) => (/** @type {Event} */ event) => {
    event.preventDefault();
    completion.take(index);
  };
  return html`<ul id="completions" class="completions" role="listbox" aria-label=${t("Completions")}
    hidden=${!completion.rows.length} ref=${list}>${completion.rows.map(
      (row, index) => html`<li key=${row.label} id=${`completion-${index}`} role="option"
      aria-selected=${index === completion.at ? "true" : "false"}
        onMouseDown=${take(index)}>
      <span class="mono">${row.label}</span>${row.value && html`<span class="muted mono">${row.value}</span>`}<span
        class="muted completion-note">${row.note}</span></li>`,
    )}</ul>`;
}

/**
 * The list below the cursor: what is in it, which row is chosen, and the keys that drive it.
 * @param {string} session
 * @param {Ref<HTMLTextAreaElement>} area
 * @param {string} text
 * @param {(text: string) => void} setText
 */
function useCompletion(session, area, text, setText) {
  const completer = useMemo(() => new Completer(session), [session]);
  const [rows, setRows] = useState(/** @type {Completion[]} */ ([]));
  const [at, setAt] = useState(0);
  const place = useRef(/** @type {Place | null} */ (null));
  const close = () => {
    place.current = null;
    setRows([]);
  };
  /** @param {HTMLTextAreaElement | HTMLInputElement} element */
  const look = async (element) => {
    place.current = wordAt(element.value, element.selectionStart ?? 0);
    if (!place.current) return close();
    const found = await completer.find(place.current);
    if (found === null || !place.current) return undefined;
    setAt(0);
    return setRows(found);
  };
  /** @param {number} index */
  const take = (index) => {
    const row = rows[index];
    if (!place.current) return;
    const { start, end } = place.current;
    close();
    area.current.focus();
    area.current.setRangeText(row.insert, start, end, "end"); // at once: the next key may come before the next frame
    setText(area.current.value);
    if (row.again) look(area.current);
  };
  /** @param {KeyboardEvent} event */
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

/**
 * Stores what was typed, a moment after the last key, and at the latest when the page or the input goes. Returns a
 * function that forgets it.
 * @param {string} name
 * @param {string} text
 */
function useKeptDraft(name, text) {
  const latest = useRef(text);
  latest.current = text;
  useEffect(() => {
    const timer = setTimeout(() => kept.set(name, text), DRAFT_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [name, text]);
  useEffect(() => {
    const store = () => kept.set(name, latest.current);
    addEventListener("pagehide", store);
    document.addEventListener("visibilitychange", store);
    return () => {
      removeEventListener("pagehide", store);
      document.removeEventListener("visibilitychange", store);
      store();
    };
  }, [name]);
  return () => {
    latest.current = "";
    kept.set(name, null);
  };
}

/**
 * The recordings in which the draft was said, kept like its text.
 * @param {string} name
 * @returns {[string[], (change: string[] | ((now: string[]) => string[])) => void]}
 */
function useKeptRecordings(name) {
  const [recordings, setRecordings] = useState(() => readNames(kept.get(name)));
  useEffect(() => {
    kept.set(name, recordings.length ? JSON.stringify(recordings) : null);
  }, [name, recordings]);
  return [recordings, setRecordings];
}

/**
 * @param {string | null} stored
 * @returns {string[]}
 */
function readNames(stored) {
  try {
    const found = JSON.parse(stored ?? "[]");
    return Array.isArray(found) ? found.map(String) : [];
  } catch {
    return [];
  }
}
