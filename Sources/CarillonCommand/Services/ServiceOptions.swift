import ArgumentParser
import CarillonBasics
import CarillonClient
import Foundation

/// The options for the device of a services command: its user, and its storage.
struct ServiceOptions: ParsableArguments {
    @Option(help: "The server's address, such as http://127.0.0.1:8080; or CARILLON_SERVER in the environment.")
    var server: String?
    @Option(help: "A client key of the app, needed once, to register; or CARILLON_KEY in the environment.")
    var key: String?
    @Option(help: "The app.") var app: String
    @Option(
        help:
            "A token (JWT) of the device's user, needed once; or CARILLON_USER_TOKEN in the environment."
    )
    var userToken: String?
    @Option(help: "A directory that only this device uses.", completion: .directory) var state: String
    @Option(
        help: "A directory that apps of this machine share, to call each other without the server; created with mode 0700.",
        completion: .directory)
    var local: String?
    @OptionGroup var authority: AuthorityOption
    @Flag(help: "Print one JSON object per line.") var json = false

    var printer: Printer { Printer(isJSON: json) }

    /// - Parameter signsIn: Whether the device is registered for the user of the token.
    func makeClient(signsIn: Bool = true) async throws -> PushClient {
        let server = try ServerChoice.url(server)
        var configuration = PushClient.Configuration(
            server: server, app: app, clientKey: key ?? Environment["CARILLON_KEY"], storageDirectory: state)
        configuration.localDirectory = local
        configuration.logger = ClientLog.logger("carillon.services", printer)
        configuration.trustRootsPath = authority.file
        let client = try PushClient(configuration: configuration)
        if signsIn, let token = userToken ?? Environment["CARILLON_USER_TOKEN"] { try await client.device.setUser(token) }
        return client
    }

    /// Runs a client while the work runs.
    func withClient(_ work: (PushClient) async throws -> Void) async throws {
        try await Self.reporting {
            let client = try await makeClient()
            try client.start()
            do {
                try await work(client)
            } catch {
                await client.stop()
                throw error
            }
            await client.stop()
        }
    }

    static func reporting(_ work: () async throws -> Void) async throws {
        do {
            try await work()
        } catch let error as PushError {
            throw CommandFault(error)
        } catch let error as ServiceError {
            throw CommandFault(error)
        }
    }
}

extension CommandFault {
    init(_ error: ServiceError) {
        let code: ExitCode =
            switch error.code {
            case .callForbidden, .identityChanged: ExitStatus.notAllowed
            case .serverUnavailable: ExitStatus.unreachable
            case .providerBusy, .deadlineExceeded, .providerSuspended, .attachmentChanged: ExitStatus.tryAgain
            case .attachmentMissing: ExitStatus.noInput
            case .storageUnavailable: ExitStatus.dataDirectory
            default: ExitStatus.refused
            }
        let name = error.number.map { "\(error.domain) \($0)" } ?? error.code.name
        self.init(code, "\(name): \(error.text)")
    }
}

extension ServiceMethod {
    /// Reads the form of the command line: `com.example.echo/1.0/echo`.
    static func parsed(_ text: String) throws -> ServiceMethod {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3 else {
            throw CommandFault(.validationFailure, "\"\(text)\" is not a method, such as com.example.echo/1.0/echo")
        }
        return ServiceMethod(parts[0], parts[1], parts[2])
    }
}

extension ServiceValue {
    /// Reads plain JSON. An object with the only member `$bytes` contains bytes in base64url.
    static func parsed(_ text: String) throws -> ServiceValue {
        guard let json = JSONValue(parsing: Array(text.utf8)), let value = ServiceValue(plain: json), value.isValid else {
            let name = "the value of a service"
            if let fault = CommandFault.numberOutOfRange(in: text.utf8, of: name, ExitStatus.refused) { throw fault }
            throw CommandFault(
                ExitStatus.refused,
                "\"\(text.prefix(100))\" is not a value of a service; a value must be simple JSON, or an array or object of simple values"
            )
        }
        return value
    }

    private init?(plain json: JSONValue) {
        switch json {
        case .null: self = .null
        case .bool(let value): self = .bool(value)
        case .integer(let value): self = .integer(Int64(value))
        case .number(let value): self = .number(value)
        case .string(let value): self = .string(value)
        case .array(let elements):
            let values = elements.compactMap { ServiceValue(plain: $0) }
            guard values.count == elements.count else { return nil }
            self = .array(values)
        case .object(let members):
            if members.count == 1, members[0].name == "$bytes", case .string(let text) = members[0].value {
                guard let bytes = Base64URL.decode(text) else { return nil }
                self = .bytes(Data(bytes))
                return
            }
            var values: [String: ServiceValue] = [:]
            for member in members {
                guard let value = ServiceValue(plain: member.value) else { return nil }
                values[member.name] = value
            }
            self = .object(values)
        }
    }

    /// The value as plain JSON, in the same form.
    var plainJSON: JSONValue {
        switch self {
        case .null: .null
        case .bool(let value): .bool(value)
        case .integer(let value): .integer(Int(value))
        case .number(let value): .number(value)
        case .string(let value): .string(value)
        case .bytes(let value): ["$bytes": .string(Base64URL.encode(Array(value)))]
        case .array(let elements): .array(elements.map(\.plainJSON))
        case .object(let members):
            .object(members.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: $0.value.plainJSON) })
        }
    }

    var plainText: String { String(decoding: plainJSON.bytes, as: UTF8.self) }
}
