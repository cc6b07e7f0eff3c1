import ArgumentParser
import CarillonCore
import CarillonSQLite
import CarillonServer
import CarillonWire
import Logging
import NIOPosix

/// Who does an operator's work: the data directory itself while no server runs, or a running server.
struct OperatorOptions: ParsableArguments {
    @Option(help: "The data directory, while no server uses it.")
    var data: String?

    @Option(help: "The address of a running server, such as http://127.0.0.1:8080.")
    var server: String?

    @Option(help: "An admin key of that server; CARILLON_KEY in the environment does as well.")
    var key: String?

    @Flag(help: "Print one JSON object a line.")
    var json = false

    func validate() throws {
        guard (data == nil) != (server == nil) else {
            throw ValidationError("Say either --data DIR, or --server URL with --key.")
        }
    }

    var printer: Printer { Printer(isJSON: json) }

    /// Does the work on whichever side was named.
    func perform(
        onStore: (Core) async throws -> Void, onServer: (APIClient) async throws -> Void
    ) async throws {
        try await reportingFaults {
            if let data {
                let store = try SQLiteStore(directory: data)
                let core = try await Core(
                    store: store, audience: "", scheduler: .on(MultiThreadedEventLoopGroup.singleton),
                    logger: Logger(label: "carillon"))
                try await onStore(core)
                try store.close()
            } else {
                try await onServer(APIClient(server: server ?? "", key: key ?? Environment["CARILLON_KEY"]))
            }
        }
    }
}
