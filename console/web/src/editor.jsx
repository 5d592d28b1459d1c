// A small editor: a text with highlighting, findings at their places, and completion of names.

import { autocompletion, closeBrackets, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "preact/hooks";
import { highlighting } from "./highlight.js";

const THEME = EditorView.theme({
  "&": { fontSize: "13px", backgroundColor: "var(--panel)", color: "var(--ink)" },
  "&.cm-focused": { outline: "2px solid var(--focus)" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--muted)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--soft) 55%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--event) 25%, transparent) !important" },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "6px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--event)", color: "var(--panel)" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap" },
});

export function Editor({ text, words, names, findings, place, onText, label }) {
  const host = useRef(null), view = useRef(null), changed = useRef(onText), offered = useRef(names), written = useRef(text), setting = useRef(false);
  changed.current = onText;
  offered.current = names;
  useEffect(() => {
    const nonce = document.querySelector("meta[name=csp-nonce]").nonce;
    const complete = (context) => {
      const word = context.matchBefore(/[A-Za-z_]\w*/);
      if (!word && !context.explicit) return null;
      const options = [...offered.current.map((name) => ({ label: name, type: "type" })), ...words.map((name) => ({ label: name, type: "keyword" }))];
      return { from: word ? word.from : context.pos, options };
    };
    view.current = new EditorView({
      parent: host.current,
      state: EditorState.create({
        doc: text,
        extensions: [
          EditorView.cspNonce.of(nonce), lineNumbers(), history(), drawSelection(), bracketMatching(), closeBrackets(), highlightActiveLine(), lintGutter(),
          autocompletion({ override: [complete] }), highlighting(words), THEME,
          keymap.of([...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
          EditorView.contentAttributes.of({ "aria-label": label }),
          EditorView.updateListener.of((update) => update.docChanged && !setting.current && changed.current((written.current = update.state.doc.toString()))),
        ],
      }),
    });
    window.auguryEditor = view.current;
    return () => view.current.destroy();
  }, []);
  useEffect(() => {
    const current = view.current;
    // What was typed comes back as it was a moment ago: only another text is one.
    if (text === written.current) return;
    written.current = text;
    setting.current = true;
    current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: text } });
    setting.current = false;
  }, [text]);
  useEffect(() => {
    const length = view.current.state.doc.length;
    const marks = findings.map(({ place: where, severity, code, message, hint }) => {
      const from = Math.min(where ? where.from : 0, length), to = Math.min(Math.max(where ? where.to : 0, from), length);
      return { from, to, severity, message: `${message} (${code})${hint ? `\n${hint}` : ""}` };
    });
    view.current.dispatch(setDiagnostics(view.current.state, marks));
  }, [findings]);
  useEffect(() => {
    if (!place) return;
    const length = view.current.state.doc.length;
    const [from, to] = [Math.min(place.from, length), Math.min(place.to, length)];
    view.current.dispatch({ selection: { anchor: from, head: to }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    view.current.focus();
  }, [place]);
  return <div class="editor" ref={host} />;
}
