import CarillonCore
import GRDB

/// Completions of paused updates. Their due times are postponed beyond any real time, so that no search for due completions reads
/// them.
extension CompletionTable {
    /// The time in milliseconds that is added to `due_at` while the update is paused: about 35,000 years.
    private static let pause: Int64 = 1 << 50

    /// A position among the completions of one update.
    struct Place {
        fileprivate var state: Int64
        fileprivate var binding: Int64
        fileprivate var entry: Int64

        static let start = Place(state: -1, binding: 0, entry: 0)

        private init(state: Int64, binding: Int64, entry: Int64) {
            (self.state, self.binding, self.entry) = (state, binding, entry)
        }

        /// - Parameter completion: The completion before its change.
        init(after completion: Completion) {
            self.init(
                state: Int64(completion.machine.state.rawValue), binding: completion.key.binding.rawValue,
                entry: Int64(completion.key.entry))
        }
    }

    /// Returns completions of an update after a position.
    func page(of update: UpdateSerial, after place: Place, limit: Int) throws -> [Completion] {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns) FROM completion \(IndexHint.sql("completion_of_update"))
            WHERE in_update = ? AND (state, binding, entry) > (?, ?, ?) ORDER BY state, binding, entry LIMIT ?
            """)
        select.bind(update.rawValue)
        select.bind(place.state)
        select.bind(place.binding)
        select.bind(place.entry)
        select.bind(limit)
        return try select.all { columns in Completion(columns, from: 0) }
    }

    /// Postpones the due times of paused updates until they are resumed.
    func putOffPaused() throws {
        try db.run(
            """
            UPDATE completion SET due_at = due_at + \(Self.pause) WHERE due_at IS NOT NULL AND due_at < \(Self.pause)
                AND in_update IN (SELECT serial FROM audience_update WHERE status = 0 AND paused_at IS NOT NULL)
            """)
    }

    /// Restores postponed due times of an update, up to a limit. Returns whether none is left.
    func bringForward(_ update: UpdateSerial, limit: Int) throws -> Bool {
        try db.run(
            """
            UPDATE completion SET due_at = due_at - \(Self.pause) WHERE (binding, in_update, entry) IN
                (SELECT binding, in_update, entry FROM completion \(IndexHint.sql("completion_of_update"))
                WHERE in_update = ? AND state < 10 AND due_at >= \(Self.pause) LIMIT ?)
            """, [update.rawValue, limit])
        return db.changesCount < limit
    }
}
