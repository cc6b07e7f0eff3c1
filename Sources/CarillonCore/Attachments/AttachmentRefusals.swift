import CarillonWire
import Metrics

/// Refusals of attachments because of an exceeded quota. Each refusal is counted.
enum AttachmentRefusals {
    static func uploads(_ refusal: Refusal) -> Refusal { counted("uploads", refusal) }

    static func overUser(_ limit: Int64) -> Refusal {
        counted(
            "user_bytes",
            Refusal(
                .quotaExceeded,
                "The attachments of one user must have at most \(limit) bytes in total. Retry after some were fetched or deleted."
            )
        )
    }

    static func overApp(_ limit: Int64) -> Refusal {
        counted(
            "app_bytes",
            Refusal(
                .quotaExceeded,
                "The attachments of the app must have at most \(limit) bytes in total. Retry after some were fetched or deleted."
            ))
    }

    static func overReserved(_ limit: Int64) -> Refusal {
        counted(
            "user_reserved",
            Refusal(
                .quotaExceeded,
                "The unfinished uploads of one user can reserve up to \(limit) bytes in total. Finish or delete one of them."
            ))
    }

    static func transfers(_ reason: String, _ refusal: Refusal) -> Refusal { counted(reason, refusal) }

    private static func counted(_ reason: String, _ refusal: Refusal) -> Refusal {
        ServerMetric.attachmentsRefused.counter(reason).increment()
        return refusal
    }
}
