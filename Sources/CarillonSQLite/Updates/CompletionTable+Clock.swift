import CarillonCore
import GRDB

extension CompletionTable {
    /// See ``UpdateStore/bringBackCompletions(in:dueAfter:at:limit:)``.
    func bringBack(
        in shards: ShardSet, dueAfter moment: Timestamp, at now: Timestamp, limit: Int
    ) throws -> Bool {
        let device = "(SELECT device FROM binding WHERE binding.serial = completion.binding)"
        try db.run(
            """
            UPDATE completion SET changed_at = CASE WHEN changed_at > :now THEN :now ELSE changed_at END, due_at = :now
                + CASE WHEN \(Self.wait) > \(Self.longestWait) THEN \(Self.longestWait) ELSE \(Self.wait) END
            WHERE (binding, in_update, entry) IN (
                SELECT binding, in_update, entry FROM completion \(IndexHint.sql("completion_due"))
                WHERE due_at IS NOT NULL AND due_at > :moment AND (changed_at > :now OR due_at > :now + \(Self.longestWait))
                \(shards.condition(on: device)) LIMIT :limit)
            """, shards.arguments(with: ["now": now.milliseconds, "moment": moment.milliseconds, "limit": limit]))
        return db.changesCount < limit
    }

    /// SQL for the time that a completion must still wait from `:now`.
    private static let wait = """
        CASE WHEN changed_at <= :now THEN due_at - :now WHEN due_at > changed_at THEN due_at - changed_at ELSE 0 END
        """

    private static let longestWait: String = {
        let cases = CompletionMachine.State.allCases.map { state in
            "WHEN \(state.rawValue) THEN \(1000 * CompletionMachine.longestWaitSeconds(in: state))"
        }
        return "CASE state \(cases.joined(separator: " ")) END"
    }()
}
