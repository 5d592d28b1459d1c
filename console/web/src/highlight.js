// Colours for rules: what the server says are words of the language, and the shapes of all others.

import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";

const SHAPES = [
  ["comment", /^(%.*|#.*)/], ["string", /^('([^'\\\n]|\\.)*'|"([^"\\\n]|\\.)*")/], ["iri", /^<[A-Za-z][^\s<>"{}|\\^`]*>/],
  ["variable", /^[?$][A-Za-z_]\w*/], ["number", /^\d+(\.\d+)?([a-z]+\b)?/], ["operator", /^(<-|←|:-|[-+*/<>=!^]+)/],
];

function language(words) {
  const known = new Set(words.map((word) => word.toLowerCase()));
  return StreamLanguage.define({
    startState: () => ({ inside: false }),
    token(stream, state) {
      if (state.inside || stream.match("/*")) {
        state.inside = !stream.match(/^.*?\*\//);
        if (state.inside) stream.skipToEnd();
        return "comment";
      }
      if (stream.eatSpace()) return null;
      for (const [name, shape] of SHAPES) if (stream.match(shape)) return name;
      const word = stream.match(/^[A-Za-z_]\w*/);
      if (!word) { stream.next(); return null; }
      const lower = word[0].toLowerCase(), same = word[0] === lower || word[0] === word[0].toUpperCase();
      if (known.has(lower) && same && (stream.peek() !== "(" || lower === "not" || word[0] !== lower)) return "keyword";
      if (/^[A-Z_]/.test(word[0])) return "variable";
      return stream.peek() === "(" ? "call" : null;
    },
    tokenTable: { comment: tags.comment, string: tags.string, iri: tags.link, number: tags.number, operator: tags.operator, keyword: tags.keyword, variable: tags.variableName, call: tags.function(tags.variableName) },
    languageData: { commentTokens: { line: "%" } },
  });
}

const STYLE = HighlightStyle.define([
  { tag: tags.comment, class: "hl-comment" }, { tag: tags.string, class: "hl-string" }, { tag: tags.link, class: "hl-string" },
  { tag: tags.number, class: "hl-number" }, { tag: tags.operator, class: "hl-operator" }, { tag: tags.keyword, class: "hl-keyword" },
  { tag: tags.variableName, class: "hl-variable" }, { tag: tags.function(tags.variableName), class: "hl-call" },
]);

export const highlighting = (words) => [language(words), syntaxHighlighting(STYLE)];
