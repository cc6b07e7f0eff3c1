import CarillonBasics
import Logging
import Synchronization
import Testing

/// Reads all lines of a server's log, and records an issue for each line that shows a secret that the test used.
final class SecretWatch: Sendable {
    private struct State {
        var secrets: Set<String> = []
        /// The secrets as a line can show them.
        var forms: [String] = []
        var lines: [String] = []
    }

    private let state = Mutex(State())
    private let target: Logger?

    /// Members of JSON whose values are secrets. Of an address, the part behind the host is one.
    private static let names: Set = [
        "secret", "secrets", "credential", "token", "endpoint", "pushEndpoint", "userToken", "registration", "p8", "p12",
        "privateKey", "passphrase", "url", "jwksURL", "pingAddress", "disconnectAddress", "signingSecret",
    ]
    /// Shorter texts occur in lines by chance.
    private static let shortestBytes = 16
    private static let mostCharacters = 100
    private static let mostLines = 1000
    private static let largestBody = 65_536

    /// - Parameter target: A logger that has all lines as well.
    init(before target: Logger? = nil) { self.target = target }

    var logger: Logger { Logger(label: "test", factory: { _ in Handler(watch: self) }) }

    // MARK: Secrets

    /// A text of several lines counts line by line; of a long line its first part.
    func note(_ secret: String) {
        let parts = secret.split(whereSeparator: \.isNewline).map { String($0.prefix(Self.mostCharacters)) }.filter {
            $0.utf8.count >= Self.shortestBytes && !$0.hasPrefix("-----")
        }
        let shown: [String] = state.withLock { state in
            let forms = parts.filter { state.secrets.insert($0).inserted }.flatMap(Self.forms(of:))
            guard !forms.isEmpty else { return [] }
            state.forms += forms
            return state.lines.filter { line in forms.contains { line.contains($0) } }
        }
        for line in shown { Self.record(line) }
    }

    private static func forms(of text: String) -> [String] {
        let bytes = Array(text.utf8)
        return [text, Base64URL.encode(bytes), bytes.map { String($0) }.joined(separator: ", ")]
    }

    /// All secrets of a body that is JSON.
    func noteMembers(of body: some Sequence<UInt8>) {
        let bytes = Array(body)
        guard (2...Self.largestBody).contains(bytes.count), let json = JSONValue(parsing: bytes) else { return }
        noteMembers(of: json)
    }

    private func noteMembers(of json: JSONValue) {
        switch json {
        case .object(let members):
            for member in members {
                if Self.names.contains(member.name) { noteTexts(of: member.value) } else { noteMembers(of: member.value) }
            }
        case .array(let values): for value in values { noteMembers(of: value) }
        default: break
        }
    }

    private func noteTexts(of json: JSONValue) {
        switch json {
        case .string(let text):
            let parts = text.split(separator: "/", omittingEmptySubsequences: false)
            if parts.count > 3, parts[0].hasSuffix(":"), parts[1].isEmpty {
                let path = parts[3...].joined(separator: "/")
                note(path)
                noteToken(in: path)
            } else {
                note(text)
            }
        case .array(let values): for value in values { noteTexts(of: value) }
        default: break
        }
    }

    /// The token of a channel in the path of a request.
    func noteToken(in path: String) {
        let parts = path.split(whereSeparator: { "/?".contains($0) })
        if let place = parts.firstIndex(of: "push"), place + 1 < parts.count { note(String(parts[place + 1])) }
    }

    /// The token of a header field.
    func noteField(_ value: String) {
        for part in value.split(whereSeparator: { " ,=".contains($0) }) { note(String(part)) }
    }

    // MARK: Lines

    private func write(_ event: LogEvent) {
        let values = (event.metadata ?? [:]).sorted { $0.key < $1.key }
        let line = "\(event.level) \(event.message)" + values.map { " \($0.key)=\($0.value)" }.joined()
        let isShown = state.withLock { state in
            if state.lines.count >= Self.mostLines { state.lines.removeFirst() }
            state.lines.append(line)
            return state.forms.contains { line.contains($0) }
        }
        if isShown { Self.record(line) }
        if let target, event.level >= target.logLevel { target.handler.log(event: event) }
    }

    private static func record(_ line: String) { Issue.record("The log shows a secret: \(line)") }

    private struct Handler: LogHandler {
        let watch: SecretWatch
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        init(watch: SecretWatch) { self.watch = watch }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            var event = event
            if !metadata.isEmpty { event.metadata = metadata.merging(event.metadata ?? [:]) { $1 } }
            watch.write(event)
        }
    }
}
