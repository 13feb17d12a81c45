// The list: the newest items are drawn, older ones when they are wanted, and it stays at the end while one is there.
import { Button, Icon, plural } from "../../app/parts.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState, useStore } from "../../app/ui.js";
import { waiting } from "../../app/waiting.js";
import { Approval, Question } from "./asking.js";
import { Item, Live, Unsent } from "./items.js";
import { openAsks } from "./transcript.js";

const STEP = 60; // items that are drawn at first, and more at a time
const NEAR = 60; // pixels from the end that count as being there

export function Messages({ conversation, context, onEdit, found = 0 }) {
  const state = useStore(conversation.transcript);
  const unsent = useStore(conversation.outbox.messages);
  const elsewhere = useStore(waiting).filter((one) => one.session_id !== state.session &&
    one.root_session_id === state.session);
  const [shown, setShown] = useState(STEP);
  const rows = useMemo(() => folded(state.items.filter((item) => !waits(item))), [state.items]);
  const later = state.items.filter(waits);
  const visible = rows.slice(-shown);
  const { box, inner, away, jump, release } = useEnd(state.session);
  useFound(found, state.ready && rows, shown, setShown, release, box);
  const earlier = useEarlier(box, rows.length > shown, () => setShown((now) => now + STEP));
  const open = openAsks(state);
  const asks = open.filter((item) => item.approval && !item.approval.answer);
  const lastReply = state.items.findLast((item) => item.kind === "assistant" && !item.undone);
  return html`<div class="scroll" ref=${box} tabindex="0" role="log" aria-label="Conversation" aria-live="polite"
    aria-relevant="additions">
    <div class="transcript" ref=${inner}>
      ${rows.length > shown && html`<button type="button" class="button quiet earlier" ref=${earlier}
        onClick=${() => setShown(shown + STEP)}>Show earlier (${rows.length - shown} more)</button>`}
      ${visible.map((row) => html`<div class="item" key=${row.key} data-seq=${row.seq}>
        ${row.group ? html`<${TakenBack} items=${row.group} context=${context} />` :
          html`<${Item} item=${row} context=${context} first=${row === asks[0]}
            last=${row === lastReply && !state.turn} />`}</div>`)}
      ${state.turn && !open.length && html`<${Live} live=${state.live} since=${state.since} />`}
      ${later.map((item) => html`<div class="item" key=${item.key}><${Item} item=${item} context=${context} /></div>`)}
      ${elsewhere.map((one, index) => html`<div class="item tool waiting" key=${`${one.session_id} ${one.call_id}`}>
        ${one.kind === "approval" ? html`<${Approval} request=${one} session=${one.session_id} cwd=${context.cwd}
          first=${!asks.length && index === 0} from=${one.title || "a session that works for this one"} />` :
            html`<${Question} question=${one} session=${one.session_id}
              from=${one.title || "a session that works for this one"} />`}</div>`)}
      ${unsent.map((message) => html`<${Unsent} key=${message.key} message=${message} outbox=${conversation.outbox}
        onEdit=${onEdit} />`)}
    </div>
    ${away && html`<${Button} class="jump" icon="bottom" onClick=${jump}>Latest<//>`}
  </div>`;
}

/** Words that nobody has heard yet stand below what is being written. */
function waits(item) {
  return item.kind === "user" && !item.taken && item.origin === "user";
}

/** Items with those that were taken back in one row each time. */
function folded(items) {
  const rows = [];
  for (const item of items) {
    const last = rows[rows.length - 1];
    if (!item.undone) rows.push(item);
    else if (last?.group) last.group.push(item);
    else rows.push({ key: `taken ${item.key}`, seq: item.seq, group: [item] });
  }
  return rows;
}

function TakenBack({ items, context }) {
  const words = items.filter((item) => item.kind === "user" || item.kind === "assistant").length;
  return html`<details class="taken"><summary><${Icon} name="undo" size=${16} />
    ${plural(words, "message")} taken back; the model no longer sees ${words === 1 ? "it" : "them"}</summary>
    ${items.map((item) => html`<div class="item" key=${item.key}><${Item} item=${item} context=${context} />
      </div>`)}</details>`;
}

/** Keeps the end in sight while the user is there; never moves what they are reading. */
function useEnd(session) {
  const box = useRef();
  const inner = useRef();
  const held = useRef(true);
  const [away, setAway] = useState(false);
  const jump = () => {
    held.current = true;
    setAway(false);
    box.current.scrollTop = box.current.scrollHeight;
  };
  useLayoutEffect(jump, [session]);
  useEffect(() => {
    const element = box.current;
    let before = element.scrollTop;
    const look = () => {
      const rest = element.scrollHeight - element.scrollTop - element.clientHeight;
      // Only the user moves up; growing content makes the rest longer without that.
      if (element.scrollTop < before - 2 && rest > NEAR) held.current = false;
      else if (rest <= NEAR) held.current = true;
      before = element.scrollTop;
      setAway(!held.current && rest > NEAR);
    };
    const follow = () => {
      if (held.current) element.scrollTop = element.scrollHeight;
      else look();
    };
    element.addEventListener("scroll", look, { passive: true });
    const sizes = new ResizeObserver(follow);
    sizes.observe(inner.current);
    sizes.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      sizes.disconnect();
    };
  }, []);
  const release = () => {
    held.current = false;
  };
  return { box, inner, away, jump, release };
}

/** Brings a message that a search found into sight, drawing as many as that takes. */
function useFound(seq, rows, shown, setShown, release, box) {
  const done = useRef(0);
  useEffect(() => {
    if (!seq || !rows || done.current === seq) return;
    const at = rows.findIndex((row) => row.seq === seq || row.result === seq);
    if (at < 0) return;
    if (rows.length - at > shown) return void setShown(rows.length - at + 5);
    done.current = seq;
    release();
    const row = box.current.querySelector(`[data-seq="${rows[at].seq}"]`);
    row?.classList.add("found");
    row?.scrollIntoView({ block: "center" });
  }, [seq, rows, shown]);
}

/** Draws more when the beginning comes into sight, and leaves what is read where it is. */
function useEarlier(box, more, grow) {
  const mark = useRef();
  const height = useRef(0);
  const latest = useRef(grow);
  latest.current = grow;
  useLayoutEffect(() => {
    if (!height.current) return;
    box.current.scrollTop += box.current.scrollHeight - height.current;
    height.current = 0;
  });
  useEffect(() => {
    if (!more || !mark.current) return undefined;
    const seen = new IntersectionObserver(
      ([entry]) => {
        if (!entry.isIntersecting || box.current.scrollTop > 400 ||
          box.current.scrollHeight <= box.current.clientHeight) return;
        height.current = box.current.scrollHeight;
        latest.current();
      },
      { root: box.current, rootMargin: "200px 0px 0px" },
    );
    seen.observe(mark.current);
    return () => seen.disconnect();
  }, [more]);
  return mark;
}
