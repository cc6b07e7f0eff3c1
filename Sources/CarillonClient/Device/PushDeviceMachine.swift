import CarillonBasics
import CarillonWire
import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What this install is to the vendor's push service and to the server, and what is to be said of it.
///
/// | Status | Fact | Becomes | Reported |
/// |---|---|---|---|
/// | any | `started` | the same | nothing; the server is asked |
/// | any | `tokenSet`, another one | the same | nothing; the server is asked |
/// | suspended | `tokenSet`, the same one | the same | nothing; the server is asked |
/// | any | `tokenTaken`, of a status before one that was reported meanwhile | the same | nothing |
/// | any | `tokenTaken`, registered | registered | status, then registered; resumed, where it was suspended |
/// | any | `tokenTaken`, suspended | suspended | status, then suspended |
/// | any | `tokenRefused` | unknown | failed registration, then status |
/// | registered | `statusReported` suspended | suspended | status, then suspended |
/// | suspended | `statusReported` registered | registered | status, then resumed |
/// | any | `serverHas`, something else | the same | nothing; the server is asked |
/// | unknown | `statusReported` | the same | nothing: the server is asked, and says it then |
/// | any | `deviceLost` | unknown | status |
///
/// What is reported says what changed; a fact that changes nothing is reported only where the table says "then". A lost connection is
/// no fact of this: the device stays what the server said last.
struct PushDeviceMachine: Equatable, Sendable {
    /// What the server is asked to take.
    struct Report: Equatable, Sendable {
        var token: String
        var previousToken: String?
        var details: PushDeviceDetails
        /// The revision of the whole description; nil if the server stores no revisions.
        var revision: String?

        /// Another for each token and for other details.
        var name: String {
            let said = Array(token.utf8) + details.json.bytes
            return Base64URL.encode(Array(SHA256.hash(data: said).prefix(12)))
        }
    }

    /// The app's, in small letters.
    private(set) var token: String?
    private(set) var details = PushDeviceDetails()
    /// The last token that the server took.
    private(set) var takenToken: String?
    private(set) var status = PushDeviceStatus.unknown
    /// In milliseconds since 1970.
    private(set) var statusAt: Int64?
    /// The server has what there is to say; false until it said so in this run.
    private(set) var isConfirmed = false
    /// The name of the last report that the server took in this run; nil where it had none.
    private var takenRevision: String?
    /// Of what the server said of the status by itself, since it answered last.
    private var reportedAt: Int64?
    /// The server refused what there is to say: it is not asked again before something else is said.
    private(set) var isRefused = false

    init() {}

    /// As it was stored. The token of the last run is the app's until it says another.
    init(token: String?, takenToken: String?, details: PushDeviceDetails, status: PushDeviceStatus, statusAt: Int64?) {
        self.token = token
        self.takenToken = takenToken
        self.details = details
        self.status = status
        self.statusAt = statusAt
    }

    /// What is to be sent to the server; nil for nothing.
    var report: Report? {
        guard let token, !isConfirmed, !isRefused else { return nil }
        return Report(token: token, previousToken: takenToken == token ? nil : takenToken, details: details)
    }

    // MARK: Facts

    /// Each run of the app says once what it is, as only that resumes a device whose token was called dead.
    mutating func started() { (isConfirmed, isRefused) = (false, false) }

    /// Answers whether it is another than before.
    mutating func tokenSet(_ token: String) -> Bool {
        guard token != self.token else {
            // Whoever says it again wants it said again, when the server would not have it.
            isRefused = false
            if status.isSuspended { isConfirmed = false }
            return false
        }
        self.token = token
        (isConfirmed, isRefused) = (false, false)
        return true
    }

    mutating func detailsSet(_ details: PushDeviceDetails) -> Bool {
        guard details != self.details else { return false }
        self.details = details
        (isConfirmed, isRefused) = (false, false)
        return true
    }

    /// The server says under which name it has what was said last. What it does not have any more is said again.
    ///
    /// - Parameter isRestored: It was restored from a backup: the status may be an old one, too.
    /// - Returns: Whether it lost something.
    mutating func serverHas(_ revision: String?, isRestored: Bool) -> Bool {
        guard isConfirmed, isRestored || takenRevision != revision else { return false }
        isConfirmed = false
        return true
    }

    /// The server took a report.
    mutating func tokenTaken(_ report: Report, _ status: PushDeviceStatus, at: Int64) -> [PushDeviceEvent] {
        (takenToken, takenRevision) = (report.token, report.revision)
        // Another may have been said meanwhile.
        isConfirmed = report.token == token && report.details == details
        defer { reportedAt = nil }
        // The server said something newer while its answer was on its way.
        if let reportedAt, at < reportedAt { return [] }
        let wasSuspended = self.status.isSuspended
        let events = change(status, at: at)
        switch status {
        case .unknown: return events
        case .registered: return events + (wasSuspended ? [.resumed] : []) + [.registered]
        case .suspended(let reason): return events + [.suspended(reason)]
        }
    }

    /// The server will not take a report.
    mutating func tokenRefused(_ report: Report, _ error: PushError) -> [PushDeviceEvent] {
        guard report.token == token, report.details == details else { return [] }
        isRefused = true
        return [.registrationFailed(error)] + change(.unknown, at: nil)
    }

    /// The server said that the status changed.
    mutating func statusReported(_ status: PushDeviceStatus, at: Int64) -> [PushDeviceEvent] {
        guard self.status != .unknown, status != .unknown, at >= statusAt ?? 0 else { return [] }
        reportedAt = at
        let wasSuspended = self.status.isSuspended
        let events = change(status, at: at)
        guard !events.isEmpty else { return [] }
        switch status {
        case .suspended(let reason): return events + [.suspended(reason)]
        case .registered, .unknown: return events + (wasSuspended ? [.resumed] : [])
        }
    }

    /// The server does not know the device any more, or it was signed out.
    mutating func deviceLost() -> [PushDeviceEvent] {
        (takenToken, takenRevision, reportedAt) = (nil, nil, nil)
        (isConfirmed, isRefused) = (false, false)
        return change(.unknown, at: nil)
    }

    private mutating func change(_ status: PushDeviceStatus, at: Int64?) -> [PushDeviceEvent] {
        let isOther = status != self.status
        (self.status, statusAt) = (status, at)
        return isOther ? [.statusChanged(status)] : []
    }
}
