import ArgumentParser
import CarillonCore
import CarillonServer
import CarillonWire
import Logging
import NIOPosix

/// The options that select the target of an operator's command: the data directory of a stopped server, or a running server.
struct OperatorOptions: ParsableArguments {
    @Option(help: "The data directory, if no server uses it; or CARILLON_DATA in the environment.")
    var data: String?

    @Option(
        name: .customLong("key-file"),
        help: "The wrapping key file of that directory, if the server has one; or CARILLON_KEY_FILE in the environment.")
    var keyFile: String?

    @Option(help: "The address of a running server, such as http://127.0.0.1:8080; or CARILLON_SERVER in the environment.")
    var server: String?

    @Option(help: "An admin key of that server; or CARILLON_KEY in the environment.")
    var key: String?

    @OptionGroup var authority: AuthorityOption

    @Flag(help: "Print one JSON object per line.")
    var json = false

    enum Side: Equatable {
        case directory(String)
        case server(String)
    }

    func validate() throws { _ = try side(Environment.all) }

    /// Returns the target. Options have precedence over the environment.
    func side(_ environment: [String: String]) throws -> Side {
        let directory = environment["CARILLON_DATA"]
        let address = environment["CARILLON_SERVER"]
        switch (data, server, directory, address) {
        case (.some, .some, _, _): throw ValidationError("Use either --data DIR, or --server URL with --key.")
        case (.some(let path), nil, _, _): return .directory(path)
        case (nil, .some(let url), _, _): return .server(try ServerChoice.checked(url, "--server"))
        case (nil, nil, .some, .some):
            throw ValidationError("CARILLON_DATA and CARILLON_SERVER are both set; use --data DIR or --server URL.")
        case (nil, nil, .some(let path), nil): return .directory(path)
        case (nil, nil, nil, .some(let url)): return .server(try ServerChoice.checked(url, "CARILLON_SERVER"))
        case (nil, nil, nil, nil): throw ValidationError("Use either --data DIR, or --server URL with --key.")
        }
    }

    var printer: Printer { Printer(isJSON: json) }

    /// Runs the command on the selected target.
    ///
    /// - Parameter stores: Opens the store of a data directory.
    func perform(
        makesMissing: Bool = false, stores: any StoreFactory = Composition.stores,
        onStore: (HomeDomain) async throws -> Void, onServer: (APIClient) async throws -> Void
    ) async throws {
        try await reportingFaults(interrupted: "interrupted; check whether the change was made") {
            switch try side(Environment.all) {
            case .directory(let path):
                let opened = try stores.open(directory: path, makesMissing: makesMissing, settings: StoreSettings())
                let domain = try await HomeDomain(
                    store: opened.store, addresses: PublicURLs(""), scheduler: .on(MultiThreadedEventLoopGroup.singleton),
                    logger: Logger(label: "carillon"),
                    wrappedBy: try (keyFile ?? Environment["CARILLON_KEY_FILE"]).map { path in try KeyFile.open(path) },
                    for: .command)
                try await onStore(domain)
                try opened.close()
            case .server(let url):
                try await onServer(
                    APIClient(
                        server: url, key: key ?? Environment["CARILLON_KEY"], authority: authority.file))
            }
        }
    }
}

/// The option that permits the first app or key in an empty data directory.
struct NewStoreOption: ParsableArguments {
    @Flag(name: .customLong("init"), help: "Create the data directory if it contains no data yet.") var makesMissing = false
}
