// The items of a transcript. Each is drawn again only when it has changed itself.
/**
 * @import {
 *   AssistantItem, EndItem, ItemContext, LiveReply, Message, NoteItem, Picture, ToolItem,
 *   UserItem,
 * } from "../../types/page.d.ts"
 */
/** @import { Outbox } from "./outbox.js" */
/** @import { Attachment } from "./message_parts.js" */

import { may, sessionPath } from "../../app/api.js";
import { argumentsOf } from "../../app/parts/call_arguments.js";
import { Dialog } from "../../app/parts/dialog.js";
import { patched } from "../../app/parts/tool_card.js";
import {
  Ansi,
  Button,
  Copy,
  Diff,
  duration,
  Icon,
  Markdown,
  money,
  Tag,
  Time,
  ToolCard,
  toast,
  tokens,
  Words,
} from "../../app/parts.js";
import { pathTo } from "../../app/router.js";
import { t } from "../../app/translation.js";
import { html, useEffect, useMemo, useState } from "../../app/ui.js";
import { EarlierChips } from "./earlier_attachments.js";
import { typed } from "./message_parts.js";
import { Approval, Question, splitDiff } from "./requests.js";
import { WrittenActions } from "./written_file.js";

/** @type {Record<string, [string, string]>} */
const ENDS = {
  interrupted: [t("Stopped."), "info"],
  failed: [t("The turn failed."), "bad"],
  crashed: [t("Hermes stopped during this turn."), "bad"],
  refused: [t("The model refused."), "warn"],
  budget: [t("A limit was reached."), "warn"],
};

/**
 * One item. `first` is the call whose question the composer answers; `actions` has what can be done with messages.
 * @param {{ item: import("../../types/page.d.ts").Item, context: ItemContext, first?: boolean, last?: boolean }} props
 */
export function Item({ item, context, first = false, last = false }) {
  return useMemo(() => {
    switch (item.kind) {
      case "user":
        return html`<${User} item=${item} context=${context} />`;
      case "assistant":
        return html`<${Assistant} item=${item} context=${context} last=${last} />`;
      case "tool":
        return html`<${Tool} item=${item} context=${context} first=${first} />`;
      case "end":
        return html`<${TurnEnd} item=${item} context=${context} />`;
      default:
        return html`<${Note} item=${item} />`;
    }
  }, [item, context, first, last]);
}

/** @param {{ item: UserItem, context: ItemContext }} props */
function User({ item, context }) {
  const { text, along } = useMemo(() => typed(item.text), [item.text]);
  if (item.origin === "hermes")
    return html`<${Note}
    item=${{ tone: "info", icon: "info", text: t("Hermes added a note for the model."), detail: item.text }} />`;
  return html`<article class="message user" aria-label=${t("You")}>
    <div class="bubble"><p class="said" dir="auto">${text}</p><${Pictures} images=${item.images} seq=${item.seq}
      session=${context.session} /><${Recordings} count=${item.recordings.length} seq=${item.seq}
      session=${context.session} />
      ${
        along.length > 0 &&
        html`<div class="along">${along.map(
          (one) => html`<${AttachmentChip} key=${one.name}
        ...${one} />`,
        )}</div>`
      }</div>
    <footer>${
      !item.taken &&
      html`<${Tag} kind="accent"><${Icon} name="clock" size=${13} />
      ${item.delivery === "steer" ? t("will be read during this turn") : t("queued")}<//>`
    }
      ${item.taken && item.delivery === "steer" && html`<span class="muted">${t("sent during the turn")}</span>`}
      ${
        !item.taken &&
        may("chat") &&
        html`<${Button} kind="quiet" icon="edit" label=${t("Take back and edit")}
          onClick=${() => context.edit(item)} /><${Button} kind="quiet" icon="trash"
          label=${t("Remove from the queue")} onClick=${() => context.withdraw(item)} />`
      }
      <span class="tools"><${Time} at=${item.ts} /><${Copy} text=${text} label=${t("Copy message")} />
      ${
        may("chat") &&
        html`<${Button} kind="quiet" icon="branch" label=${t("Branch from here and edit the message")}
        onClick=${() => context.branch(item)} />`
      }</span></footer>
  </article>`;
}

/**
 * An attachment of a message: a chip that can be opened.
 * @param {Attachment} props
 */
function AttachmentChip({ kind, name, content }) {
  const short = name.startsWith("/") ? name.split("/").pop() : name;
  return html`<details class="along-one"><summary class="tag"><${Icon} name=${kind === "skill" ? "learning" : "file"}
    size=${14} /><span title=${name}>${short}</span></summary><pre tabindex="0">${content}</pre></details>`;
}

/** @param {{ item: AssistantItem, context: ItemContext, last: boolean }} props */
function Assistant({ item, context, last }) {
  return html`<article class="message assistant" aria-label="Hermes">
    ${item.reasoning && html`<${Reasoning} parts=${[item.reasoning]} />`}
    ${item.text && html`<${Markdown} text=${item.text} />`}
    ${item.finish === "length" && html`<p class="muted">${t("The reply was cut off at the maximum length.")}</p>`}
    ${item.finish === "refused" && html`<p class="muted">${t("The model refused to continue.")}</p>`}
    ${
      item.text &&
      html`<footer><span class="tools"><${Time} at=${item.ts} />
      ${item.model && html`<span class="muted">${item.model}</span>`}
      <${Copy} text=${item.text} label=${t("Copy reply")} />
      ${
        may("chat") &&
        html`<${Button} kind="quiet" icon="branch" label=${t("Branch from here")}
        onClick=${() => context.branch(item)} />`
      }
      ${
        last &&
        may("chat") &&
        html`<${Button} kind="quiet" icon="retry" label=${t("Try again")}
        onClick=${context.retry} />`
      }</span></footer>`
    }
  </article>`;
}

/**
 * The reply being streamed.
 * @param {{ live: LiveReply | null, since: number }} props
 */
export function Live({ live, since }) {
  const [isThinking, isWriting] = [Boolean(live?.reasoning.length), Boolean(live?.text.length)];
  return html`<article class="message assistant live" aria-label=${t("Hermes is writing")} aria-busy="true">
    ${
      live &&
      isThinking &&
      html`<${Reasoning} parts=${[
        ...live.reasoning.blocks.map((block) => block.text),
        live.reasoning.tail,
      ]} open=${!isWriting} />`
    }
    ${live && isWriting ? html`<${Markdown} text=${live.text} open />` : null}
    <p class=${`working ${isWriting ? "is-writing" : ""}`}>
      <span class="dots" aria-hidden="true"><i /><i /><i /></span><span class="muted">
      ${
        live?.tool
          ? t("Preparing {tool}", { tool: live.tool })
          : isWriting
            ? t("Writing")
            : isThinking
              ? t("Thinking")
              : t("Working")
      }</span>${since > 0 && html`<${Running} since=${since} />`}</p>
  </article>`;
}

/** @param {{ since: number }} props */
function Running({ since }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((count) => count + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.floor(Date.now() / 1000 - since));
  return html`<span class="muted running-since">
    ${t("for {duration}", { duration: seconds < 60 ? t("{number} s", { number: seconds }) : duration(seconds) })}
  </span>`;
}

/** @param {{ parts: string[], open?: boolean }} props */
function Reasoning({ parts, open = false }) {
  return html`<details class="reasoning" open=${open}><summary><${Icon} name="thought" size=${16} />
    ${open ? t("Thinking") : t("Thoughts")}</summary><div class="reasoning-text">${parts}</div></details>`;
}

/** @param {{ item: ToolItem, context: ItemContext, first: boolean }} props */
function Tool({ item, context, first }) {
  const { approval, question } = item;
  const waits = item.status === "waiting";
  const pictures =
    item.images.length > 0 &&
    html`<${Pictures} images=${item.images} seq=${item.result}
    session=${context.session} />`;
  const written = useMemo(() => writtenBy(item, context.cwd), [item, context.cwd]);
  return html`<${ToolCard} call=${item} pictures=${pictures}>
    ${
      waits &&
      approval &&
      !approval.answer &&
      html`<${Approval} request=${approval} session=${context.session} cwd=${context.cwd}
        orphan=${item.orphan} />`
    }
    ${
      waits &&
      question &&
      !question.answered &&
      html`<${Question} question=${question} session=${context.session}
      first=${first} orphan=${item.orphan} />`
    }
    ${
      (approval?.answer || written.length > 0) &&
      html`<div class="tool-foot">${
        approval?.answer &&
        html`<p class="answered"><${Icon} name=${approval.answer === "deny" ? "close" : "check"}
      size=${14} />${verdictText(approval)}</p>`
      }${
        written.length > 0 &&
        html`<ul class="written-files">${written.map(
          (
            path,
          ) => html`<li key=${path}>${written.length > 1 && html`<span>${path.split("/").pop()}</span>`}
          <${WrittenActions}
        session=${context.session} turn=${item.turn} path=${path} /></li>`,
        )}</ul>`
      }</div>`
    }
    ${
      question?.answered &&
      html`<p class="answered"><${Icon} name="question" size=${14} /><span>
      ${question.text}</span><strong>${question.reply ?? t("no answer")}</strong></p>`
    }
  <//>`;
}

/**
 * The files in the session's folder that a call wrote.
 * @param {ToolItem} item
 * @param {string} cwd
 */
function writtenBy({ name, arguments: text, status }, cwd) {
  const values = status === "done" ? argumentsOf(text) : null;
  if (!values) return [];
  const paths =
    name === "apply_patch"
      ? patched(String(values.patch ?? ""))
      : name === "write_file" || name === "edit_file"
        ? [String(values.path ?? "")]
        : [];
  return paths
    .map((path) => (path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path))
    .filter((path) => path && !/^[/~]|^\.\.(?:\/|$)/.test(path));
}

/** @param {NonNullable<ToolItem["approval"]>} approval */
function verdictText({ answer, by, reason }) {
  const words =
    {
      once: t("Allowed once"),
      session: t("Allowed for this session"),
      always: t("Always allowed"),
      deny: t("Denied"),
    }[answer] ?? answer;
  const who =
    {
      nobody: t("nobody could be asked"),
      expired: t("nobody answered in time"),
      policy: t("remembered"),
    }[by ?? ""] ?? (by ? t("by {who}", { who: by }) : "");
  return `${words}${who ? ` (${who})` : ""}${reason ? `: ${reason}` : ""}`;
}

/**
 * @param {{ item: Pick<NoteItem, "tone" | "icon" | "text" | "detail"> & Partial<NoteItem> }} props
 */
function Note({ item }) {
  return html`<div class=${`note ${item.tone}`}><${Icon} name=${item.icon} size=${16} /><div><span>${item.text}</span>
    ${item.link && html` <a href=${`#${pathTo("chat", item.link)}`}>${t("Open")}</a>`}${
      item.place && html` <a href=${`#/${item.place}`}>${t("Review")}</a>`
    }
    ${
      item.detail &&
      html`<details><summary>${t("More")}</summary>${
        splitDiff(item.detail)[1]
          ? html`<${Diff} text=${item.detail} />`
          : html`<pre class="note-detail" tabindex="0"><${Ansi} text=${item.detail} /></pre>`
      }</details>`
    }</div></div>`;
}

function ChangeModel() {
  return html`<a class="button" href="#/settings/models">${t("Change model")}</a>`;
}

/** @param {{ item: EndItem, context: ItemContext }} props */
function TurnEnd({ item, context }) {
  const [words, tone] = ENDS[item.reason] ?? ["", ""];
  const usage = item.usage;
  const facts = [
    item.seconds > 0 && duration(item.seconds),
    usage && tokens((usage.input_tokens ?? 0) + (usage.output_tokens ?? 0)),
    usage?.cost_usd ? money(usage.cost_usd) : "",
  ].filter(Boolean);
  return html`<div class="end">
    ${
      words &&
      html`<div class=${`note ${tone}`} role=${tone === "bad" ? "alert" : undefined}><${Icon}
      name=${tone === "bad" ? "warn" : "info"} size=${16} /><div><span>${words}</span>
        ${item.detail && html` <span><${Words} text=${item.detail} /></span>`}</div>
      ${tone === "bad" && may("chat") && html`<${Button} icon="retry" onClick=${context.retry}>${t("Try again")}<//>`}
      ${item.reason === "failed" && may("admin") && html`<${ChangeModel} />`}</div>`
    }
    ${
      facts.length > 0 &&
      html`<p class="muted facts-line">${facts.join(" · ")} ${
        item.acted &&
        html`<button type="button" class="link" onClick=${() => context.diff(item.turn)}>${t("changes")}</button>`
      } ${
        usage &&
        html`<button type="button" class="link"
        onClick=${() => context.cost(item.turn)}>${t("cost")}</button>`
      }</p>`
    }
  </div>`;
}

/**
 * Pictures of a message. Those with an address elsewhere are not fetched, only named.
 * @param {{ images: Picture[], seq?: number, session?: string }} props
 */
export function Pictures({ images, seq, session }) {
  const [large, setLarge] = useState("");
  const [name, setName] = useState("");
  /** @param {string} address @param {string} source */
  const enlarge = (address, source) => {
    setLarge(address);
    setName(source.split("/").pop() || t("picture"));
  };
  if (!images?.length) return null;
  return html`<div class="pictures">${images.map((image, index) => {
    if (/^https?:/i.test(image.source))
      return html`<a key=${index} href=${image.source} target="_blank"
      rel="noopener noreferrer">${image.source}</a>`;
    const address = image.url ?? sessionPath(session ?? "", "pictures", `${seq}`, `${index}`);
    return html`<button key=${index} type="button" class="picture" aria-label=${t("Enlarge the picture")}
      onClick=${() => enlarge(address, image.source)}><img src=${address}
      alt=${t("Picture {number}", { number: index + 1 })}
      loading="lazy" /></button>`;
  })}${
    large &&
    html`<${Dialog} title=${t("Picture")} class="large" onClose=${() => setLarge("")}><img src=${large} alt="" />
      <p class="picture-links"><a href=${large} target="_blank" rel="noopener">${t("Open in a new tab")}</a>
      <a href=${large} download=${name}>${t("Download")}</a></p><//>`
  }</div>`;
}

/**
 * The recordings in which a message was said.
 * @param {{ count: number, seq: number, session: string }} props
 */
function Recordings({ count, seq, session }) {
  if (!count) return null;
  return html`<div class="recordings">${Array.from(
    { length: count },
    (_, number) =>
      html`<${Recording} key=${number} address=${sessionPath(session, "recordings", `${seq}`, `${number}`)} />`,
  )}</div>`;
}

/**
 * A button that fetches a recording and plays it; then the browser's own controls.
 * @param {{ address: string }} props
 */
function Recording({ address }) {
  const [sound, setSound] = useState("");
  const play = async () => {
    const found = await fetch(address);
    if (found.ok) setSound(URL.createObjectURL(await found.blob()));
    else toast(t("The recording no longer exists."), "bad");
  };
  useEffect(() => () => URL.revokeObjectURL(sound), [sound]);
  if (sound) return html`<audio controls autoplay src=${sound} />`;
  return html`<${Button} kind="quiet" icon="play" onClick=${play}>${t("Play the recording")}<//>`;
}

/**
 * A message that is being sent.
 * @param {{ message: Message, outbox: Outbox, onEdit: (message: Message) => void }} props
 */
export function Unsent({ message, outbox, onEdit }) {
  const failed = message.state === "failed";
  const edit = () => {
    outbox.remove(message.key);
    onEdit(message);
  };
  return html`<article class=${`message user unsent ${message.state}`} aria-label=${t("You, not sent yet")}>
    <div class="bubble"><p class="said" dir="auto">${message.text}</p>
      ${message.images.length > 0 && html`<${Pictures} images=${message.images} />`}
      ${message.earlier && html`<${EarlierChips} earlier=${message.earlier} />`}
      ${(message.files ?? []).map(
        (one) =>
          html`<span key=${one.name} class="tag"><${Icon} name="file" size=${14} />${one.name}</span>`,
      )}</div>
    <footer>${
      failed
        ? html`<span class="unsent-why" role="alert"><${Icon} name="warn"
      size=${14} />${t("Not sent. {reason}", { reason: message.error })}${
        message.pictures && !message.images.length ? ` ${t("Add its pictures again.")}` : ""
      }</span>
        <${Button} icon="retry" onClick=${() => outbox.again(message.key)}>${t("Send again")}<//><${Button} kind="quiet"
          icon="edit" onClick=${() => edit()}>${t("Edit")}<//><${Button} kind="quiet" icon="trash"
            label=${t("Discard")} onClick=${() => outbox.remove(message.key)} />`
        : html`<span class="muted">${
            message.state === "accepted"
              ? t("accepted")
              : html`<span class="spinner" aria-hidden="true" /> ${t("sending")}`
          }</span>`
    }</footer>
  </article>`;
}
