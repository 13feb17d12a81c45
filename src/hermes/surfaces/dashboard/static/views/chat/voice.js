// Voice in the chat: push to talk, hands-free conversation, and spoken replies, as far as the server can do them.
/** @import { Answer, Delivery, Transcript } from "../../types/page.d.ts" */
/** @import { Microphone } from "./microphone.js" */
/** @import { SpeechPlayer } from "./spoken_reply.js" */

import { api, errorText } from "../../app/api.js";
import { useKeys } from "../../app/keys.js";
import { Button, toast } from "../../app/parts.js";
import { t } from "../../app/translation.js";
import { html, kept, Store, useEffect, useRef, useStore } from "../../app/ui.js";

const LOOK_MS = 50; // between two looks at the loudness
const FORGET_MS = 15_000; // of silence after which a recording is begun again
const HOLD_MS = 350; // a button held longer is let go to end
const WHILE_SPEAKING = 2.5; // how much louder somebody must be to interrupt Hermes

/** @typedef {"off" | "starting" | "recording" | "listening" | "hearing" | "transcribing"} Phase */
/** @typedef {{ phase: Phase, isHandsFree: boolean, isSpeaking: boolean, level: number }} VoiceState */

/**
 * What was said, and the name of the recording, which the server keeps.
 * @typedef {Answer<"POST", "/api/speech/transcriptions">} Heard
 */

/**
 * What the composer lends the voice.
 * @typedef {object} VoiceHost
 * @property {(heard: Heard) => void} fill
 * @property {(recording: File) => void} keep attaches a recording; one of the same name is replaced
 * @property {(heard: Heard, delivery: Delivery) => void} send
 * @property {() => boolean} isRunning
 * @property {Store<Transcript> | undefined} transcript
 */

/** @type {Record<Phase, string>} */
const WORDS = {
  off: "",
  starting: t("Starting"),
  recording: t("Recording"),
  listening: t("Listening"),
  hearing: t("Hearing you"),
  transcribing: t("Understanding"),
};

/** What the server can do; null until it is known. */
const abilities = new Store(/** @type {Answer<"GET", "/api/speech"> | null} */ (null));

class Voice {
  state = new Store(
    /** @type {VoiceState} */ ({
      phase: "off",
      isHandsFree: false,
      isSpeaking: false,
      level: 0,
    }),
  );
  /** @type {VoiceHost | null} */
  #host = null;
  /** @type {Microphone | null} */
  #microphone = null;
  /** @type {ReturnType<Microphone["record"]> | null} */
  #recording = null;
  /** @type {SpeechPlayer | null} */
  #player = null;
  #timer = 0;
  /** @type {() => unknown} */
  #unwatch = () => {};

  /**
   * Works for a composer until the returned function is called; the next composer takes over.
   * @param {VoiceHost} host
   */
  attach(host) {
    this.#host = host;
    this.#follow();
    return () => {
      if (this.#host !== host) return;
      this.#host = null;
      this.#follow();
      if (this.state.value.phase === "recording") this.#silence();
    };
  }

  /** Whether replies are spoken although the conversation is not hands-free. */
  get speaksReplies() {
    return kept.get("voice.replies") === "on";
  }

  set speaksReplies(wanted) {
    kept.set("voice.replies", wanted ? "on" : null);
    if (!wanted) this.#player?.stop();
    this.#follow();
  }

  /** Starts a recording, or ends it and puts its words into the composer. */
  async talk() {
    if (this.state.value.phase === "recording") return this.#finish();
    if (this.state.value.phase !== "off") return undefined;
    this.#player?.stop();
    if (!(await this.#open())) return undefined;
    this.#recording = this.#microphone?.record() ?? null;
    this.#set({ phase: "recording" });
    this.#timer = setInterval(() => this.#set({ level: this.#microphone?.level() ?? 0 }), LOOK_MS);
    return undefined;
  }

  /** Starts or ends the conversation without hands. */
  async toggleHandsFree() {
    if (this.state.value.isHandsFree) return this.stop();
    if (this.state.value.phase !== "off" || !(await this.#open())) return undefined;
    this.#set({ isHandsFree: true });
    await this.#follow();
    return this.#listen();
  }

  /** Ends everything. */
  stop() {
    this.#player?.stop();
    this.#set({ isHandsFree: false });
    this.#silence();
    this.#follow();
  }

  async #open() {
    this.#set({ phase: "starting" });
    try {
      const { Microphone } = await import("./microphone.js");
      this.#microphone = await Microphone.open();
      return true;
    } catch (error) {
      toast(errorText(error), "bad");
      this.#set({ phase: "off" });
      return false;
    }
  }

  #silence() {
    clearInterval(this.#timer);
    this.#recording?.drop();
    this.#recording = null;
    this.#microphone?.close();
    this.#microphone = null;
    this.#set({ phase: "off", level: 0 });
  }

  async #finish() {
    const recording = this.#recording;
    this.#recording = null;
    clearInterval(this.#timer);
    this.#set({ phase: "transcribing", level: 0 });
    const name = `recording-${new Date().toTimeString().slice(0, 8).replaceAll(":", "-")}.wav`;
    const heard = recording ? await this.#understand(() => recording.finish(), name) : null;
    this.#silence();
    if (heard) this.#host?.fill(heard);
  }

  /** Waits for speech, sends what was said, and goes on. */
  async #listen() {
    const { SpeechDetector } = await import("./microphone.js");
    const microphone = this.#microphone;
    if (!microphone) return;
    const detector = new SpeechDetector();
    let recording = this.#record(microphone);
    this.#set({ phase: "listening" });
    const look = async () => {
      const level = microphone.level();
      this.#set({ level });
      if (this.state.value.phase === "transcribing") return;
      const now = performance.now();
      const isSpeaking = this.#player?.isSpeaking ?? false;
      const found = detector.feed(level, now, isSpeaking ? WHILE_SPEAKING : 1);
      if (found === "start") {
        this.#player?.stop();
        this.#set({ phase: "hearing" });
      } else if (found === "end") {
        this.#set({ phase: "transcribing" });
        const spoken = () => recording.finish(detector.startedAt);
        const heard = await this.#understand(spoken, "recording.wav"); // of noises only the last is kept
        if (!this.state.value.isHandsFree) return;
        if (heard) this.#host?.send(heard, this.#host.isRunning() ? "interrupt" : "queue");
        recording = this.#record(microphone);
        this.#set({ phase: "listening" });
      } else if (!detector.isSpeaking && now - recording.begun > FORGET_MS) {
        recording.drop();
        recording = this.#record(microphone);
      }
    };
    this.#timer = setInterval(look, LOOK_MS);
  }

  /** @param {Microphone} microphone */
  #record(microphone) {
    const recording = microphone.record();
    this.#recording = recording;
    return recording;
  }

  /**
   * @param {() => Promise<Blob>} finish
   * @param {string} name of the recording, if it is not understood
   */
  async #understand(finish, name) {
    try {
      const recording = new File([await finish()], name, { type: "audio/wav" });
      return await understoodOrKept(recording, (one) => this.#host?.keep(one));
    } catch (error) {
      toast(errorText(error), "bad");
      return null;
    }
  }

  /** Speaks the replies of the shown session, or stops doing that. */
  async #follow() {
    this.#unwatch();
    this.#unwatch = () => {};
    const transcript = this.#host?.transcript;
    const isWanted = this.state.value.isHandsFree || this.speaksReplies;
    if (!transcript || !isWanted || !abilities.value?.speaks) return;
    const { SpeechPlayer, speakReplies } = await import("./spoken_reply.js");
    if (this.#host?.transcript !== transcript) return;
    const tell = () => this.#set({ isSpeaking: this.#player?.isSpeaking ?? false });
    this.#player ??= new SpeechPlayer(tell);
    this.#unwatch();
    this.#unwatch = speakReplies(transcript, this.#player);
  }

  /** @param {Partial<VoiceState>} change */
  #set(change) {
    this.state.set({ ...this.state.value, ...change });
  }
}

export const voice = new Voice();

/**
 * What is said in a recording. If it can't be understood, the user is told why, and the recording is kept.
 * @param {File} recording
 * @param {(recording: File) => void} keep
 * @returns {Promise<Heard | null>}
 */
export async function understoodOrKept(recording, keep) {
  try {
    return await api.upload("/api/speech/transcriptions", {}, recording);
  } catch (error) {
    keep(recording);
    toast(
      `${errorText(error)} ${t("The recording is attached: send it, or remove it and try again.")}`,
      "bad",
    );
    return null;
  }
}

/** Whether the browser has a microphone for this page. It has one only over HTTPS or on this machine. */
const hasMicrophone = () => Boolean(navigator.mediaDevices && window.MediaRecorder);

/**
 * What `/voice WORD` does.
 * @param {string} word
 */
export async function setSpokenReplies(word) {
  const known = abilities.value ?? (await api.get("/api/speech"));
  if (!known.speaks)
    return void toast(t("No voice is set up. On the machine: hermes voice"), "bad");
  const wanted = word ? word !== "off" : !voice.speaksReplies;
  voice.speaksReplies = wanted;
  return void toast(wanted ? t("Replies are spoken.") : t("Replies are not spoken."));
}

/**
 * The microphone's buttons; nothing where the server understands no speech.
 * @param {VoiceHost} props
 */
export function VoiceButtons(props) {
  const known = useStore(abilities);
  const state = useStore(voice.state);
  useEffect(() => {
    if (!abilities.value)
      api.get("/api/speech").then(
        (found) => abilities.set(found),
        () => {},
      );
  }, []);
  const latest = useRef(props);
  latest.current = props;
  useEffect(
    () =>
      voice.attach({
        fill: (heard) => latest.current.fill(heard),
        keep: (recording) => latest.current.keep(recording),
        send: (heard, delivery) => latest.current.send(heard, delivery),
        isRunning: () => latest.current.isRunning(),
        transcript: props.transcript,
      }),
    [props.transcript, known?.speaks],
  );
  const isThere = Boolean(known?.listens) && hasMicrophone();
  useKeys(
    isThere
      ? [
          {
            keys: "Alt+v",
            label: t("Talk, or finish talking"),
            group: t("Chat"),
            icon: "mic",
            typing: true,
            run: () => void voice.talk(),
          },
        ]
      : [],
  );
  if (!isThere) return null;
  const isRecording = state.phase === "recording";
  return html`<${TalkButton} isRecording=${isRecording}
      isDisabled=${["listening", "hearing", "transcribing"].includes(state.phase)} />
    ${
      known?.speaks &&
      html`<${Button} kind="quiet" icon="voice" class=${state.isHandsFree ? "on" : ""}
        aria-pressed=${state.isHandsFree ? "true" : "false"} disabled=${isRecording}
        label=${state.isHandsFree ? t("End the conversation") : t("Talk hands-free")}
        onClick=${() => voice.toggleHandsFree()} />`
    }`;
}

/** @param {{ isRecording: boolean, isDisabled: boolean }} props */
function TalkButton({ isRecording, isDisabled }) {
  const pressed = useRef(0); // when the press began that started the recording
  const press = (/** @type {PointerEvent} */ event) => {
    if (event.button !== 0 || voice.state.value.phase !== "off") return;
    pressed.current = performance.now();
    voice.talk();
  };
  const click = () => {
    const held = pressed.current ? performance.now() - pressed.current : Infinity;
    pressed.current = 0;
    if (held > HOLD_MS) voice.talk(); // a short press only started it
  };
  const label = isRecording ? t("Finish recording") : t("Talk");
  return html`<${Button} kind="quiet" icon=${isRecording ? "stop" : "mic"} class=${isRecording ? "recording" : ""}
    aria-pressed=${isRecording ? "true" : "false"} disabled=${isDisabled} label=${label}
    title=${`${label} (Alt V)`} onPointerDown=${press} onClick=${click} />`;
}

/** What the microphone does now, and how loud it is. */
export function VoiceStatus() {
  const { phase, isHandsFree, isSpeaking, level } = useStore(voice.state);
  const words = isHandsFree && isSpeaking && phase === "listening" ? t("Speaking") : WORDS[phase];
  if (!words) return null;
  return html`<p class="voice-status" role="status"><span class="voice-level"
    style=${`--level: ${Math.min(1, level * 6).toFixed(2)}`} aria-hidden="true" />${words}</p>`;
}
