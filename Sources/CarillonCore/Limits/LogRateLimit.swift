/// Decides which log entries are written. Of the entries with one text and one owner, the first is written at once. After that,
/// one per minute is written, with the number of withheld entries. So failing requests cannot fill a log.
package struct LogRateLimit: Sendable {
    package struct Key: Hashable, Sendable {
        package var text: String
        /// The subject of the entry, such as an app; empty for the whole server.
        package var owner: String

        package init(text: String, owner: String) {
            self.text = text
            self.owner = owner
        }
    }

    package enum Decision: Equatable, Sendable {
        /// - Parameters:
        ///   - key: The key under which the entry is counted.
        ///   - withheld: The number of entries of the key that were withheld before.
        case write(Key, withheld: Int)
        case withhold(Key)
    }

    private struct State {
        var writtenAt: Int64
        var withheld = 0
    }

    package static let intervalNanoseconds: Int64 = 60_000_000_000
    /// The maximum number of keys. Entries of further owners are counted under the key of their text.
    package static let mostKeys = 10_000

    private var states: [Key: State] = [:]

    package init() {}

    /// - Parameter now: Ticks, in nanoseconds.
    package mutating func decide(_ wanted: Key, at now: Int64) -> Decision {
        let key = known(wanted, at: now)
        guard let state = states[key] else {
            states[key] = State(writtenAt: now)
            return .write(key, withheld: 0)
        }
        guard Self.isOver(state, at: now) else {
            states[key] = State(writtenAt: state.writtenAt, withheld: state.withheld + 1)
            return .withhold(key)
        }
        states[key] = State(writtenAt: now)
        return .write(key, withheld: state.withheld)
    }

    /// Returns the keys whose minute is over and that have withheld entries, with their numbers. Each must be written now. Keys
    /// without withheld entries are removed.
    package mutating func due(at now: Int64) -> [(key: Key, withheld: Int)] {
        let over = states.filter { Self.isOver($0.value, at: now) }
        for (key, state) in over { states[key] = state.withheld > 0 ? State(writtenAt: now) : nil }
        return over.filter { $0.value.withheld > 0 }.map { ($0.key, $0.value.withheld) }
    }

    private mutating func known(_ key: Key, at now: Int64) -> Key {
        guard states[key] == nil, states.count >= Self.mostKeys else { return key }
        states = states.filter { $0.value.withheld > 0 || !Self.isOver($0.value, at: now) }
        return states.count < Self.mostKeys ? key : Key(text: key.text, owner: "")
    }

    private static func isOver(_ state: State, at now: Int64) -> Bool { now - state.writtenAt >= intervalNanoseconds }
}
