import CarillonWire
import Hummingbird
import HummingbirdCore

/// The query parameters of a route. A request can have each of them once, and no others.
struct QueryParameters: Sendable, ExpressibleByArrayLiteral {
    /// Nil if the route ignores its query.
    let names: [String]?

    private init(names: [String]?) { self.names = names }

    init(arrayLiteral names: String...) { self.names = names.sorted() }

    /// For routes whose address is part of an endpoint. Other programs, such as UnifiedPush, add their own parameters to it.
    static let ignored = QueryParameters(names: nil)

    /// - Throws: ``Refusal`` of the first parameter that is unknown or repeated.
    func check(_ query: FlatDictionary<Substring, Substring>) throws(Refusal) {
        guard let names else { return }
        var seen: Set<Substring> = []
        for (name, value) in query where !(name.isEmpty && value.isEmpty) {
            guard names.contains(where: { $0 == name }) else {
                throw refusal("The query parameter \"\(name.prefix(60))\" is unknown.", names)
            }
            guard seen.insert(name).inserted else {
                throw refusal("The query parameter \"\(name)\" is repeated.", names)
            }
        }
    }

    private func refusal(_ sentence: String, _ names: [String]) -> Refusal {
        let known = names.map { "\"\($0)\"" }.joined(separator: ", ")
        let rest = names.isEmpty ? "This address has none." : "Known are \(known), each at most once."
        return Refusal(.parameterInvalid, "\(sentence) \(rest)")
    }
}
