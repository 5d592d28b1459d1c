// Starts the language server of Augury with the Python that the user has selected, and shows what runs on a sample answer.

import * as vscode from "vscode";
import { LanguageClient, LanguageClientOptions, ServerOptions, State } from "vscode-languageclient/node";

const LANGUAGES = [
  { scheme: "file", language: "augury" },
  { scheme: "file", language: "spaseq" },
  { scheme: "untitled", language: "augury" },
];
const ANSWERS = "augury-answers";

let client: LanguageClient | undefined;

/** The texts of answers, by the URI under which they are open. */
class Answers implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  async show(name: string, text: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: ANSWERS, path: `/${name}.txt` });
    this.texts.set(uri.toString(), text);
    this.changed.fire(uri);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preview: true, preserveFocus: true });
  }
}

/** The Python of the setting, else the one that the Python extension has selected, else python3. */
async function python(scope?: vscode.Uri): Promise<string> {
  const configured = vscode.workspace.getConfiguration("augury", scope).get<string>("python", "").trim();
  if (configured) {
    return configured;
  }
  const extension = vscode.extensions.getExtension("ms-python.python");
  if (extension) {
    try {
      const api = extension.isActive ? extension.exports : await extension.activate();
      const selected = api?.environments?.getActiveEnvironmentPath?.(scope);
      const environment = selected && (await api.environments.resolveEnvironment(selected));
      const path = environment?.executable?.uri?.fsPath;
      if (path) {
        return path;
      }
    } catch {
      // The Python extension has no environment: the python3 of the path may still have Augury.
    }
  }
  return process.platform === "win32" ? "python" : "python3";
}

async function start(context: vscode.ExtensionContext, answers: Answers, log: vscode.LogOutputChannel): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const command = await python(folder);
  const server: ServerOptions = { command, args: ["-m", "augury", "lsp"], options: { cwd: folder?.fsPath } };
  const options: LanguageClientOptions = {
    documentSelector: LANGUAGES,
    outputChannel: log,
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/*.{aug,spaseq,csv,jsonl}") },
    middleware: {
      executeCommand: async (name, args, next) => {
        const result = (await next(name, args)) as { text?: string } | undefined;
        if (result?.text !== undefined) {
          await answers.show(name === "augury.showAnswers" ? String(args[1]) : "answers", result.text);
        }
        return result;
      },
    },
  };
  client = new LanguageClient("augury", "Augury", server, options);
  try {
    await client.start();
  } catch (error) {
    log.error(`${command} -m augury lsp: ${error}`);
    const choice = await vscode.window.showErrorMessage(
      `The language server of Augury does not start with ${command}. Install it there: pip install 'augury[lsp]'`,
      "Settings",
      "Log",
    );
    if (choice === "Settings") {
      await vscode.commands.executeCommand("workbench.action.openSettings", "augury.python");
    } else if (choice === "Log") {
      log.show();
    }
  }
}

async function stop(): Promise<void> {
  if (client && client.state !== State.Stopped) {
    await client.stop();
  }
  client = undefined;
}

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel("Augury", { log: true });
  const answers = new Answers();
  const restart = async () => {
    await stop();
    await start(context, answers, log);
  };
  context.subscriptions.push(
    log,
    vscode.workspace.registerTextDocumentContentProvider(ANSWERS, answers),
    vscode.commands.registerCommand("augury.restart", restart),
    vscode.commands.registerCommand("augury.showLog", () => log.show()),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("augury.python")) {
        await restart();
      }
    }),
  );
  await start(context, answers, log);
  const pythonExtension = vscode.extensions.getExtension("ms-python.python");
  const changed = pythonExtension?.isActive && pythonExtension.exports?.environments?.onDidChangeActiveEnvironmentPath;
  if (changed) {
    context.subscriptions.push(changed(restart));
  }
}

export async function deactivate(): Promise<void> {
  await stop();
}
