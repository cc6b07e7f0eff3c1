import ArgumentParser
import CarillonWire

/// The `carillon` command.
@main
struct Carillon: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "carillon",
        abstract: "A push server that you run yourself, and its tools.",
        discussion: """
            Start with `carillon demo`: it shows one push on its way, and how to do the same by hand.

            Exit codes: 0 done; 1 a fault; 3 a message ended otherwise than acknowledged; 64 wrong usage; \
            65 refused for what was asked; 66 a file cannot be read; 69 the server cannot be reached; \
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
