import hooks from "eslint-plugin-react-hooks";
import ts from "typescript-eslint";

export default ts.config(
  { ignores: ["src/api/schema.d.ts"] },
  ...ts.configs.strict,
  {
    files: ["src/**/*.{ts,tsx}"],
    plugins: { "react-hooks": hooks },
    rules: {
      ...hooks.configs.recommended.rules,
      "max-lines": ["error", { max: 250 }],
      // A hostile title, snippet or log line stays text: nothing is ever set as HTML.
      "no-restricted-syntax": ["error", { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: "text stays text" }],
    },
  },
  {
    // A catalogue has every sentence twice.
    files: ["src/language/control/*.ts"],
    rules: { "max-lines": ["error", { max: 400 }] },
  },
  {
    files: ["src/**/*.{ts,tsx}"],
    ignores: ["src/api/useDeed.ts"],
    rules: { "no-restricted-imports": ["error", { paths: [{ name: "@tanstack/react-query", importNames: ["useMutation"], message: "useDeed: a second click asks for nothing more" }, { name: "@tanstack/react-router", importNames: ["lazyRouteComponent"], message: "lazyPage: it waits for a server that is away" }] }] },
  },
);
