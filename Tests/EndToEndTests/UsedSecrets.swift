import CarillonBasics
import Synchronization
import Testing

/// The secrets of the requests to a server and of its answers. No line that the server prints may show one.
final class UsedSecrets: Sendable {
    private let all = Mutex<Set<String>>([])

    private static let names: Set = [
        "secret", "secrets", "credential", "token", "endpoint", "pushEndpoint", "userToken", "registration",
    ]
    /// Shorter texts occur in lines by chance.
    private static let shortestBytes = 16

    /// Of an endpoint the token is the secret.
    func note(_ text: String) {
        let parts = text.split(whereSeparator: { "/?".contains($0) })
        let secret = parts.firstIndex(of: "push").flatMap { $0 + 1 < parts.count ? String(parts[$0 + 1]) : nil } ?? text
        if secret.utf8.count >= Self.shortestBytes { all.withLock { _ = $0.insert(secret) } }
    }

    func noteMembers(of body: String) {
        if let json = JSONValue(parsing: Array(body.utf8)) { noteMembers(of: json) }
    }

    private func noteMembers(of json: JSONValue) {
        switch json {
        case .object(let members):
            for member in members {
                switch member.value {
                case .string(let text) where Self.names.contains(member.name): note(text)
                case .array(let values) where Self.names.contains(member.name):
                    for case .string(let text) in values { note(text) }
                default: noteMembers(of: member.value)
                }
            }
        case .array(let values): for value in values { noteMembers(of: value) }
        default: break
        }
    }

    /// Records an issue for each line that shows a secret.
    func check(_ lines: [String]) {
        let secrets = all.withLock { $0 }
        for line in lines where secrets.contains(where: { line.contains($0) }) {
            Issue.record("A server printed a secret: \(line)")
        }
    }
}
