// `SDK.api` of the original agent over our routes: what its plugins ask for, in the shapes they expect.
// Left out on purpose: what reads keys back, and what starts or stops the gateway.
import { api, sessionPath, signedOut } from "../../app/api.js";
import { chooseTheme, THEME_NAMES, theme } from "../../app/theme.js";
import { refreshPlugins } from "./plugin_store.js";

/** @typedef {Record<string, any>} Shape */

const MOST_SESSIONS = 500; // of one request
const DAY_MS = 86_400_000;

/** @type {(path: string, params?: Shape) => Promise<any>} */
const get = (path, params) => api.get(path, params);
/** @type {(path: string, body?: Shape) => Promise<any>} */
const post = (path, body) => api.post(path, /** @type {never} */ (body));

/**
 * @param {Shape} one
 * @param {string[]} [running]
 */
function sessionOf(one, running = []) {
  return {
    id: one.id,
    title: one.title || null,
    source: one.surface || null,
    model: one.model || null,
    started_at: one.created,
    ended_at: null,
    last_active: one.updated,
    is_active: running.includes(one.id),
    message_count: one.messages,
    tool_call_count: 0,
    input_tokens: one.tokens,
    output_tokens: 0,
    preview: one.title || null,
    parent_session_id: one.parent || null,
  };
}

/** @param {Shape} one */
function messageOf(one) {
  if (one.role === "tool")
    return {
      role: "tool",
      content: one.text ?? "",
      tool_name: one.name,
      tool_call_id: one.call_id,
    };
  const calls = (one.tool_calls ?? []).map((/** @type {Shape} */ call) => ({
    id: call.id,
    function: { name: call.name, arguments: call.arguments },
  }));
  return { role: one.role, content: one.text ?? "", ...(calls.length && { tool_calls: calls }) };
}

/**
 * The most recently used sessions, with as many requests as that takes.
 * @param {number} count
 */
async function newestSessions(count) {
  const { sessions, more, running } = await get("/api/sessions", {
    limit: Math.min(count, MOST_SESSIONS),
  });
  const found = { sessions, more, running };
  while (found.more && found.sessions.length < count) {
    const next = await get("/api/sessions", {
      limit: Math.min(count - found.sessions.length, MOST_SESSIONS),
      before: found.sessions.at(-1).updated,
    });
    found.sessions.push(...next.sessions);
    found.more = next.more;
  }
  return found;
}

const sessions = {
  async getSessions(limit = 20, offset = 0) {
    const found = await newestSessions(limit + offset);
    const shown = found.sessions.slice(offset, offset + limit);
    return {
      sessions: shown.map((/** @type {Shape} */ one) => sessionOf(one, found.running)),
      total: found.sessions.length + (found.more ? 1 : 0),
      limit,
      offset,
    };
  },
  async getSessionDetail(/** @type {string} */ id) {
    const { session, running } = await get(sessionPath(id));
    return sessionOf(session, running ? [id] : []);
  },
  async getSessionMessages(/** @type {string} */ id) {
    const { messages } = await get(sessionPath(id, "messages"));
    return { session_id: id, messages: messages.map(messageOf) };
  },
  async getSessionLatestDescendant(/** @type {string} */ id) {
    await get(sessionPath(id));
    return { requested_session_id: id, session_id: id, path: [id], changed: false };
  },
  async searchSessions(/** @type {string} */ q) {
    const { hits } = await get("/api/search", { q });
    const results = hits.map((/** @type {Shape} */ hit) => ({
      session_id: hit.session,
      snippet: hit.snippet,
      role: hit.role,
      title: hit.title,
      session_started: hit.ts,
    }));
    return { results };
  },
  async renameSession(/** @type {string} */ id, /** @type {string} */ title) {
    const changed = await api.patch(sessionPath(id), { title });
    return { ok: true, title: changed.title };
  },
  async deleteSession(/** @type {string} */ id) {
    await api.delete(sessionPath(id));
    return { ok: true };
  },
  async bulkDeleteSessions(/** @type {string[]} */ ids) {
    for (const id of ids) await api.delete(sessionPath(id));
    return { ok: true, deleted: ids.length };
  },
  exportSessionUrl: (/** @type {string} */ id) => sessionPath(id, "export"),
};

/** @param {Shape} job */
function jobOf(job) {
  const iso = (/** @type {number | null | undefined} */ at) =>
    at ? new Date(at * 1000).toISOString() : null;
  return {
    id: job.id,
    name: job.name,
    prompt: job.prompt,
    schedule: { kind: "text", expr: job.schedule, display: job.schedule },
    schedule_display: job.schedule,
    enabled: job.state === "active",
    state: job.running ? "running" : job.state === "active" ? "scheduled" : job.state,
    deliver: job.deliver,
    model: job.model || null,
    next_run_at: iso(job.next),
    last_run_at: iso(job.last?.due),
    last_status: job.last?.state ?? null,
    last_error: job.last?.state === "failed" ? job.last.reason : null,
  };
}

/**
 * What a job's form takes of the fields that the original names.
 * @param {Shape} given
 */
function jobForm({ name, prompt, schedule, deliver, model }) {
  return { name, prompt, schedule, deliver, model };
}

/** @param {string} action */
const onJob = (action) => async (/** @type {string} */ id) =>
  jobOf(await post(`/api/schedules/${encodeURIComponent(id)}/${action}`));

const jobs = {
  getCronJobs: async () => (await get("/api/schedules")).jobs.map(jobOf),
  createCronJob: async (/** @type {Shape} */ job) =>
    jobOf(await post("/api/schedules", jobForm(job))),
  updateCronJob: async (/** @type {string} */ id, /** @type {Shape} */ changes) =>
    jobOf(
      /** @type {Shape} */ (
        await api.patch(`/api/schedules/${encodeURIComponent(id)}`, jobForm(changes))
      ),
    ),
  pauseCronJob: onJob("pause"),
  resumeCronJob: onJob("resume"),
  triggerCronJob: onJob("run"),
  async deleteCronJob(/** @type {string} */ id) {
    await api.delete(`/api/schedules/${encodeURIComponent(id)}`);
    return { ok: true };
  },
};

const skills = {
  getSkills: async () =>
    (await get("/api/skills")).skills.map((/** @type {Shape} */ one) => ({
      name: one.name,
      description: one.description,
      category: one.origin,
      enabled: one.enabled,
    })),
  async getSkillContent(/** @type {string} */ name) {
    const { text } = await get(`/api/skills/${encodeURIComponent(name)}`);
    return { name, content: text };
  },
  async toggleSkill(/** @type {string} */ name, /** @type {boolean} */ enabled) {
    await api.patch(`/api/skills/${encodeURIComponent(name)}`, { enabled });
    return { ok: true };
  },
  async getToolsets() {
    const { tools } = await get("/api/tools");
    const names = [...new Set(tools.map((/** @type {Shape} */ one) => one.toolset))];
    return names.map((name) => {
      const own = tools.filter((/** @type {Shape} */ one) => one.toolset === name);
      return {
        name,
        label: name,
        description: own.map((/** @type {Shape} */ one) => one.name).join(", "),
        enabled: own.some((/** @type {Shape} */ one) => one.offered),
        configured: true,
        tools: own.map((/** @type {Shape} */ one) => one.name),
      };
    });
  },
  async getMemory() {
    const { files } = await get("/api/memory");
    const length = (/** @type {string} */ word) =>
      files.find((/** @type {Shape} */ one) => one.name.toLowerCase().includes(word))?.length ?? 0;
    return {
      active: "builtin",
      providers: [],
      builtin_files: { memory: length("memory"), user: length("user") },
    };
  },
};

/**
 * Usage rows summed by a field.
 * @param {Shape[]} rows
 * @param {string} by
 */
function summed(rows, by) {
  /** @type {Map<string, Shape>} */
  const sums = new Map();
  for (const row of rows) {
    const sum = sums.get(row[by]) ?? { [by]: row[by], sessions: 0, ...NO_USAGE };
    sum.input_tokens += row.input_tokens;
    sum.output_tokens += row.output_tokens;
    sum.cache_read_tokens += row.cache_read_tokens;
    sum.reasoning_tokens += row.reasoning_tokens;
    sum.estimated_cost += row.cost_usd;
    sum.actual_cost += row.cost_usd;
    sum.api_calls += row.calls;
    sums.set(row[by], sum);
  }
  return [...sums.values()];
}

const NO_USAGE = {
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  reasoning_tokens: 0,
  estimated_cost: 0,
  actual_cost: 0,
  api_calls: 0,
};

/** @param {Shape[]} rows */
function totalsOf(rows) {
  const sum = summed(
    rows.map((row) => ({ ...row, all: "" })),
    "all",
  )[0] ?? { ...NO_USAGE };
  return {
    total_input: sum.input_tokens,
    total_output: sum.output_tokens,
    total_cache_read: sum.cache_read_tokens,
    total_reasoning: sum.reasoning_tokens,
    total_estimated_cost: sum.estimated_cost,
    total_actual_cost: sum.actual_cost,
    total_sessions: 0,
    total_api_calls: sum.api_calls,
  };
}

/** @param {number} days */
async function usageOf(days) {
  const since = new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);
  return (await get("/api/usage", { since })).usage;
}

const models = {
  async getAnalytics(days = 30) {
    const rows = await usageOf(days);
    const summary = {
      total_skill_loads: 0,
      total_skill_edits: 0,
      total_skill_actions: 0,
      distinct_skills_used: 0,
    };
    return {
      daily: summed(rows, "day"),
      by_model: summed(rows, "model"),
      totals: totalsOf(rows),
      skills: { summary, top_skills: [] },
    };
  },
  async getModelsAnalytics(days = 30) {
    const rows = await usageOf(days);
    const found = summed(rows, "model").map((one) => ({
      ...one,
      provider: rows.find((/** @type {Shape} */ row) => row.model === one.model)?.provider ?? "",
      tool_calls: 0,
      capabilities: {},
    }));
    const totals = { distinct_models: found.length, ...totalsOf(rows) };
    return { models: found, totals, period_days: days };
  },
  async getModelInfo() {
    const { model } = await get("/api/status");
    const [provider, ...name] = model.split(":");
    return { provider, model: name.join(":") || model, capabilities: {} };
  },
  async getModelOptions() {
    const { current, choices } = await get("/api/models");
    const names = [...new Set(choices.map((/** @type {Shape} */ one) => one.provider))];
    const isOf = (/** @type {unknown} */ name) => (/** @type {Shape} */ one) =>
      one.provider === name;
    const providers = names.map((name) => ({
      slug: name,
      name,
      models: choices.filter(isOf(name)).map((/** @type {Shape} */ one) => one.name),
    }));
    return { model: current, providers };
  },
};

/**
 * A field of an object itself: a name such as `__proto__` does not lead to what all objects share.
 * @param {any} place
 * @param {string} name
 */
function ownField(place, name) {
  return place && Object.hasOwn(place, name) ? place[name] : undefined;
}

/**
 * @template T
 * @param {Shape} place
 * @param {string} name
 * @param {T} value
 * @returns {T}
 */
function setOwnField(place, name, value) {
  Object.defineProperty(place, name, {
    value,
    configurable: true,
    enumerable: true,
    writable: true,
  });
  return value;
}

/** Settings by their keys as one object: "a.b" becomes {a: {b}}. */
async function nestedSettings() {
  const { settings } = await get("/api/settings");
  /** @type {Shape} */
  const all = {};
  for (const { key, value } of settings) {
    const parts = key.split(".");
    const name = parts.pop();
    let place = all;
    for (const part of parts) place = ownField(place, part) ?? setOwnField(place, part, {});
    setOwnField(place, name, value);
  }
  return all;
}

const settings = {
  getConfig: nestedSettings,
  async getDefaults() {
    const { settings: rows } = await get("/api/settings");
    return Object.fromEntries(rows.map((/** @type {Shape} */ one) => [one.key, one.default]));
  },
  async getSchema() {
    const { settings: rows } = await get("/api/settings");
    const fields = rows.map((/** @type {Shape} */ one) => [
      one.key,
      {
        type: one.choices.length ? "select" : one.kind,
        description: one.description,
        category: one.key.split(".")[0],
        options: one.choices,
      },
    ]);
    const order = new Set(rows.map((/** @type {Shape} */ one) => one.key.split(".")[0]));
    return { fields: Object.fromEntries(fields), category_order: [...order] };
  },
  /**
   * Sets what differs from the settings as they are.
   * @param {Shape} config
   */
  async saveConfig(config) {
    const { settings: rows } = await get("/api/settings");
    for (const { key, value } of rows) {
      const given = key.split(".").reduce(ownField, config);
      if (given === undefined || JSON.stringify(given) === JSON.stringify(value)) continue;
      const text = typeof given === "string" ? given : JSON.stringify(given);
      await api.put(`/api/settings/${encodeURIComponent(key)}`, { value: text });
    }
    return { ok: true };
  },
};

const admin = {
  getStatus: async () => {
    const status = await get("/api/status");
    const { platforms } = await get("/api/commands/gateway.platforms");
    const { watched } = await get("/api/schedules");
    return {
      ...status,
      active_sessions: status.running.length,
      gateway_running: watched,
      gateway_platforms: Object.fromEntries(
        platforms
          .filter((/** @type {Shape} */ one) => one.is_connected)
          .map((/** @type {Shape} */ one) => [one.name, { state: "configured", updated_at: "" }]),
      ),
    };
  },
  getAuthMe: () => get("/api/auth"),
  async logout() {
    await post("/api/auth/logout");
    signedOut.set(true);
  },
  getMcpServers: () => get("/api/mcp"),
  testMcpServer: (/** @type {string} */ name) => post("/api/commands/mcp.test", { name }),
  async removeMcpServer(/** @type {string} */ name) {
    await post("/api/commands/mcp.remove", { name });
    return { ok: true };
  },
  async getMessagingPlatforms() {
    const { platforms } = await get("/api/commands/gateway.platforms");
    return {
      platforms: platforms.map((/** @type {Shape} */ one) => ({
        id: one.name,
        name: one.label,
        description: one.how,
        configured: one.is_connected,
        enabled: one.is_connected,
      })),
    };
  },
  async getPairing() {
    const { people, waiting } = await post("/api/commands/gateway.pair.list");
    const user = (/** @type {Shape} */ one) => ({
      platform: one.platform,
      user_id: one.id,
      user_name: one.name,
    });
    return { approved: people.map(user), pending: waiting.map(user) };
  },
  async revokePairing(/** @type {string} */ platform, /** @type {string} */ id) {
    await post("/api/commands/gateway.pair.revoke", { who: `${platform}:${id}` });
    return { ok: true };
  },
  getPlugins: async () => (await get("/api/plugins")).plugins,
  async rescanPlugins() {
    const answer = await get("/api/plugins");
    await refreshPlugins(answer);
    return { ok: true, count: answer.plugins.length };
  },
  async getProfiles() {
    const { profile } = await get("/api/auth");
    const name = profile || "default";
    return { profiles: [{ name, is_default: !profile, description: "" }] };
  },
  async getActiveProfile() {
    const { profile } = await get("/api/auth");
    return { active: profile || "default", current: profile || "default" };
  },
  getThemes: async () => ({
    active: theme.value,
    themes: Object.entries(THEME_NAMES).map(([name, label]) => ({ name, label, description: "" })),
  }),
  async setTheme(/** @type {string} */ name) {
    const isKnown = Object.hasOwn(THEME_NAMES, name);
    if (isKnown) chooseTheme(name);
    return { ok: isKnown, theme: theme.value };
  },
  runDoctor: () => get("/api/doctor"),
};

export const METHODS = { ...sessions, ...jobs, ...skills, ...models, ...settings, ...admin };
