import ArgumentParser
import CarillonWire

/// The `carillon` command.
///
/// Each subcommand is a type `…Command` in the folder of its subject. Start with `Serve/ServeCommand.swift`, which runs a server,
/// and `Operate/OperatorOptions.swift`, which selects the target of an operator's commands. `Composition.swift` selects the kind
/// of store.
@main
struct Carillon: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "carillon",
        abstract: "A self-hosted push server, and its tools.",
        discussion: """
            Start with `carillon demo`: it shows how one push is delivered, and the commands to do the same yourself.

            Exit codes: 0 done; 1 an error; 3 the outcome of a message is not acknowledged; 64 wrong usage; 65 the request \
            was refused; 66 a file cannot be read; 69 the server cannot be reached; \
            73 the data directory cannot be used; 74 the output cannot be written; 75 try again later; 77 the key is not valid for this; 130 stopped by Ctrl-C.
            """,
        version: CarillonVersion.text,
        subcommands: [
            ServeCommand.self, HealthCommand.self, DemoCommand.self, AppsCommand.self, KeysCommand.self, DevicesCommand.self,
            BackupCommand.self, RestoreCommand.self, ListenCommand.self, SendCommand.self, APNsCommand.self,
            ItemsCommand.self, SubscriptionsCommand.self, UpdatesCommand.self, AttachmentsCommand.self, ServicesCommand.self,
            ExpressionCommand.self,
        ])

    static func main() async {
        CommandLog.bootstrap()
        do {
            var command = try await asyncParseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            end(with: error)
        }
    }

    /// Prints the error line by line. The parser's message about an error has several lines and quotes the input.
    private static func end(with error: any Error) -> Never {
        let code = exitCode(for: error)
        guard code != .success else { exit(withError: error) }
        let message = fullMessage(for: error)
        if !message.isEmpty {
            message.split(separator: "\n", omittingEmptySubsequences: false).map(String.init).forEach(StandardError.print)
        }
        exit(withError: code)
    }
}
