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
                "The attachments that one user uploaded may have \(limit) bytes in all until they are fetched.")
        )
    }

    static func overApp(_ limit: Int64) -> Refusal {
        counted("app_bytes", Refusal(.quotaExceeded, "The attachments of the app may have \(limit) bytes in all."))
    }

    static func overReserved(_ limit: Int64) -> Refusal {
        counted(
            "user_reserved",
            Refusal(
                .quotaExceeded,
                "The unfinished uploads of one user may reserve \(limit) bytes in all. Finish or delete one of them."))
    }

    static func transfers(_ reason: String, _ refusal: Refusal) -> Refusal { counted(reason, refusal) }

    private static func counted(_ reason: String, _ refusal: Refusal) -> Refusal {
        ServerMetric.attachmentsRefused.counter(reason).increment()
        return refusal
    }
}
