// The story of a session as it is told by its feed: what was, then what happens.
import { SessionFeed } from "../../app/feed.js";
import { useEffect, useRef, useState } from "../../app/ui.js";
import { Story } from "./story.js";

/** {story, version, state, gone}. `version` grows with each addition; `state` is "replaying" until all rows are there. */
export function useStory(id) {
  const held = useRef(null);
  held.current ??= new Story();
  const [seen, setSeen] = useState({ version: 0, state: "replaying", gone: false });
  useEffect(() => {
    const take = (events) => {
      let state = null;
      let gone = false;
      let grown = 0;
      for (const event of events) {
        if (event.type === "feed.epoch_changed") held.current = new Story();
        else if (event.type === "feed.partial") state = "live";
        else if (event.type === "feed.deleted") gone = true;
        else if (event.seq !== undefined && event.session_id === id) grown += (held.current.add(event), 1);
      }
      if (state || gone || grown) setSeen((was) => ({ version: was.version + grown, state: state ?? was.state, gone: was.gone || gone }));
    };
    const feed = new SessionFeed(id, { onEvents: take, onState: (state) => state === "closed" && setSeen((was) => ({ ...was, state: "closed" })) });
    return () => feed.close();
  }, [id]);
  return { story: held.current, ...seen };
}
