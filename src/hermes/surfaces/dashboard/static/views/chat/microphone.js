// The microphone: recordings as WAV files, how loud it is, and when somebody starts and stops speaking.
import { t } from "../../app/translation.js";

const RATE_HZ = 16_000; // what speech recognition works with
const START_MS = 160; // of sound that make the beginning of speech
const END_MS = 900; // of silence that end it
const LOUDER = 3; // times the noise of the room: somebody speaks
const QUIETEST = 0.012; // below this nobody speaks, however quiet the room is
const LEAD_S = 0.4; // kept before the first sound

/** An open microphone. `close` must be called, or the browser goes on showing that it listens. */
export class Microphone {
  #analyser;
  #samples;

  /**
   * @param {MediaStream} stream
   * @param {AudioContext} context
   */
  constructor(stream, context) {
    this.stream = stream;
    this.context = context;
    this.#analyser = context.createAnalyser();
    this.#analyser.fftSize = 1024;
    context.createMediaStreamSource(stream).connect(this.#analyser);
    this.#samples = new Float32Array(this.#analyser.fftSize);
  }

  /** Asks the person for the microphone. Throws an Error with a message for them. */
  static async open() {
    try {
      const stream = await navigator.mediaDevices.getUserMedia({
        audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true },
      });
      return new Microphone(stream, new AudioContext());
    } catch (error) {
      const refused = error instanceof DOMException && error.name === "NotAllowedError";
      throw new Error(
        refused
          ? t(
              "The browser does not allow the microphone here. Allow it beside the address, then try again.",
            )
          : t("No microphone was found. Connect one and try again, or attach a sound file."),
      );
    }
  }

  /** How loud it is now, from 0 to 1. */
  level() {
    this.#analyser.getFloatTimeDomainData(this.#samples);
    const power = this.#samples.reduce((sum, sample) => sum + sample * sample, 0);
    return Math.sqrt(power / this.#samples.length);
  }

  /** Starts a recording. */
  record() {
    return new Recording(this);
  }

  close() {
    for (const track of this.stream.getTracks()) track.stop();
    this.context.close().catch(() => {});
  }
}

class Recording {
  /** @type {Blob[]} */
  #chunks = [];
  #recorder;
  #context;
  #ended;

  /** @param {Microphone} microphone */
  constructor(microphone) {
    this.#context = microphone.context;
    this.begun = performance.now();
    this.#recorder = new MediaRecorder(microphone.stream);
    this.#recorder.ondataavailable = (event) => this.#chunks.push(event.data);
    this.#ended = new Promise((resolve) => {
      this.#recorder.onstop = resolve;
    });
    this.#recorder.start();
  }

  /** Ends it without a result. */
  drop() {
    if (this.#recorder.state !== "inactive") this.#recorder.stop();
  }

  /**
   * Ends it. Resolves to a WAV file with one channel, from `spokeAt` (as performance.now()) on.
   * @param {number} [spokeAt]
   */
  async finish(spokeAt = 0) {
    this.drop();
    await this.#ended;
    const type = this.#recorder.mimeType;
    const sound = await new Blob(this.#chunks, { type }).arrayBuffer();
    const decoded = await this.#context.decodeAudioData(sound).catch(() => null);
    if (!decoded) throw new Error(t("Nothing was recorded. Wait until the bar moves, then speak."));
    const from = Math.max(0, (spokeAt - this.begun) / 1000 - LEAD_S);
    return wavOf(await resampled(decoded, Math.min(from, decoded.duration)));
  }
}

/**
 * @param {AudioBuffer} sound
 * @param {number} from
 */
async function resampled(sound, from) {
  const length = Math.max(1, Math.ceil((sound.duration - from) * RATE_HZ));
  const offline = new OfflineAudioContext(1, length, RATE_HZ);
  const source = offline.createBufferSource();
  source.buffer = sound;
  source.connect(offline.destination);
  source.start(0, from);
  return (await offline.startRendering()).getChannelData(0);
}

/** @param {Float32Array} samples */
export function wavOf(samples) {
  const view = new DataView(new ArrayBuffer(44 + samples.length * 2));
  const write = (/** @type {number} */ at, /** @type {string} */ text) =>
    [...text].forEach((one, index) => {
      view.setUint8(at + index, one.charCodeAt(0));
    });
  write(0, "RIFF");
  view.setUint32(4, 36 + samples.length * 2, true);
  write(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // PCM
  view.setUint16(22, 1, true); // channels
  view.setUint32(24, RATE_HZ, true);
  view.setUint32(28, RATE_HZ * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  write(36, "data");
  view.setUint32(40, samples.length * 2, true);
  samples.forEach((sample, index) => {
    const value = Math.max(-1, Math.min(1, sample));
    view.setInt16(44 + index * 2, value * 32767, true);
  });
  return new Blob([view], { type: "audio/wav" });
}

/** Tells by the loudness when somebody starts and stops speaking. It learns how loud the room is. */
export class SpeechDetector {
  #noise = QUIETEST / LOUDER;
  #loudSince = 0;
  #quietSince = 0;
  isSpeaking = false;
  startedAt = 0;

  /**
   * @param {number} level
   * @param {number} now milliseconds
   * @param {number} [factor] how much louder speech must be, such as while Hermes itself speaks
   * @returns {"" | "start" | "end"}
   */
  feed(level, now, factor = 1) {
    const isLoud = level > Math.max(QUIETEST, this.#noise * LOUDER) * factor;
    if (!isLoud && !this.isSpeaking) this.#noise += (level - this.#noise) * 0.05;
    this.#loudSince = isLoud ? this.#loudSince || now : 0;
    this.#quietSince = isLoud ? 0 : this.#quietSince || now;
    if (!this.isSpeaking && isLoud && now - this.#loudSince >= START_MS) {
      this.isSpeaking = true;
      this.startedAt = this.#loudSince;
      return "start";
    }
    if (this.isSpeaking && !isLoud && now - this.#quietSince >= END_MS) {
      this.isSpeaking = false;
      return "end";
    }
    return "";
  }
}
