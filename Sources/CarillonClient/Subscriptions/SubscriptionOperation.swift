import CarillonBasics
import CarillonWire

/// A request to the server about subscriptions.
enum SubscriptionOperation: Equatable, Sendable {
    case put(Int)
    case change(Int, Set<SubscriptionsMachine.Change>)
    case remove(Int)
    /// Removes the subscription on the server with the key of an entry, which will replace it.
    case removeKey(Int)
    case removeMany(SubscriptionsMachine.Filter)
    case compare
    case list(after: String?)

    /// The entry of the request; nil for a request about several entries.
    var number: Int? {
        switch self {
        case .put(let number), .change(let number, _), .remove(let number), .removeKey(let number): number
        case .removeMany, .compare, .list: nil
        }
    }

    private static let path = "/v1/device/subscriptions"
    private static let listedAtOnce = 100

    /// Returns the HTTP-like request for the operation; nil if no request is necessary.
    ///
    /// - Parameter declared: The entries that the app declared to be all that have a key.
    func request(
        id requestID: Int, about entries: [Int: SubscriptionsMachine.Entry], _ declared: [Int]?
    ) -> ClientFrame.Request? {
        func request(_ method: String, _ rest: String = "", _ body: [UInt8] = []) -> ClientFrame.Request {
            ClientFrame.Request(id: requestID, method: method, path: Self.path + rest, body: body)
        }
        switch self {
        case .put(let number):
            guard let entry = entries[number] else { return nil }
            return request("POST", "", entry.definition.body)
        case .change(let number, let changes):
            guard let entry = entries[number], let id = entry.id else { return nil }
            var members: [JSONValue.Member] = []
            if changes.contains(.trigger) {
                members.append(.init(name: "trigger", value: entry.definition.trigger.map { .string($0) } ?? .null))
            }
            if changes.contains(.format) { members.append(.init(name: "format", value: entry.definition.format.json)) }
            return request("PATCH", "/\(id)", JSONValue.object(members).bytes)
        case .remove(let number):
            if let id = entries[number]?.id { return request("DELETE", "/\(id)") }
            // The server may have the subscription under its key.
            return entries[number]?.definition.key.map { request("DELETE", "?key=\($0.queryEncoded)") }
        case .removeKey(let number):
            return entries[number]?.definition.key.map { request("DELETE", "?key=\($0.queryEncoded)") }
        case .removeMany(.all): return request("DELETE")
        case .removeMany(.status(let status)): return request("DELETE", "?status=\(status.rawValue)")
        case .compare:
            guard let declared else { return nil }
            let keys = declared.compactMap { number -> JSONValue.Member? in
                guard let definition = entries[number]?.definition, let key = definition.key else { return nil }
                return .init(name: key, value: .string(definition.hash))
            }
            let body = JSONValue.object([.init(name: "keys", value: .object(keys))])
            return request("PUT", "", body.bytes)
        case .list(let after):
            return request("GET", "?limit=\(Self.listedAtOnce)" + (after.map { "&after=\($0)" } ?? ""))
        }
    }
}
