import CarillonBasics
import CarillonWire
import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The status of this installation at the vendor's push service and at the server, and the report that must be sent to the
/// server.
///
/// | Status | Input | New status | Events |
/// |---|---|---|---|
/// | any | `started` | the same | none; a report is sent |
/// | any | `tokenSet`, another token | the same | none; a report is sent |
/// | suspended | `tokenSet`, the same token | the same | none; a report is sent |
/// | any | `tokenAccepted`, with a status before one that the server reported meanwhile | the same | none |
/// | any | `tokenAccepted`, registered | registered | status, resumed if it was suspended, then registered |
/// | any | `tokenAccepted`, suspended | suspended | status, then suspended |
/// | any | `tokenRefused` | unknown | failed registration, then status |
/// | registered | `statusReported` suspended | suspended | status, then suspended |
/// | suspended | `statusReported` registered | registered | status, then resumed |
/// | any | `serverHas`, another revision | the same | none; a report is sent |
/// | unknown | `statusReported` | the same | none; the response to the report has the status |
/// | any | `deviceLost` | unknown | status |
///
/// A change of status is reported only if the status changed. The other events of `tokenAccepted` and `tokenRefused` are reported in
/// any case, those of `statusReported` only with a change. The loss of a connection is not an input: the device keeps the status
/// that the server reported last.
struct PushDeviceMachine: Equatable, Sendable {
    /// The report that is sent to the server.
    struct Report: Equatable, Sendable {
        var token: String
        var previousToken: String?
        var details: PushDeviceDetails
        /// The revision of the whole description; nil if the server stores no revisions.
        var revision: String?

        /// Differs for each token and each description.
        var name: String {
            let reported = Array(token.utf8) + details.json.bytes
            return Base64URL.encode(Array(SHA256.hash(data: reported).prefix(12)))
        }
    }

    /// The token that the app set, in lower-case digits.
    private(set) var token: String?
    private(set) var details = PushDeviceDetails()
    /// The last token that the server accepted.
    private(set) var acceptedToken: String?
    private(set) var status = PushDeviceStatus.unknown
    /// The beginning of the status, in milliseconds since 1970.
    private(set) var statusAt: Int64?
    /// Whether the server has the present report. False until the server confirmed it in this run.
    private(set) var isConfirmed = false
    /// The revision of the last report that the server accepted in this run; nil if it had no revision.
    private var acceptedRevision: String?
    /// The time of the newest status that the server reported by itself since its last response.
    private var reportedAt: Int64?
    /// Whether the server rejected the present report. It is not sent again before the app sets something else.
    private(set) var isRefused = false

    init() {}

    /// Restores the stored state. The app's token is that of the last run until the app sets another.
    init(token: String?, acceptedToken: String?, details: PushDeviceDetails, status: PushDeviceStatus, statusAt: Int64?) {
        self.token = token
        self.acceptedToken = acceptedToken
        self.details = details
        self.status = status
        self.statusAt = statusAt
    }

    /// The report to be sent to the server; nil if no report is due.
    var report: Report? {
        guard let token, !isConfirmed, !isRefused else { return nil }
        return Report(token: token, previousToken: acceptedToken == token ? nil : acceptedToken, details: details)
    }

    // MARK: Inputs

    /// A report is sent once in each run of the app, because only a report resumes a device whose token was reported as invalid.
    mutating func started() { (isConfirmed, isRefused) = (false, false) }

    /// Returns whether the token changed.
    mutating func tokenSet(_ token: String) -> Bool {
        guard token != self.token else {
            // A token that is set again is sent again if the server rejected it.
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

    /// The server reports the revision of the description that it has. If it lost the last report, the report is sent again.
    /// - Parameter isRestored: Whether the server was restored from a backup: the status may be an old one, too.
    /// - Returns: Whether the server lost something.
    mutating func serverHas(_ revision: String?, isRestored: Bool) -> Bool {
        guard isConfirmed, isRestored || acceptedRevision != revision else { return false }
        isConfirmed = false
        return true
    }

    /// The server accepted a report.
    mutating func tokenAccepted(_ report: Report, _ status: PushDeviceStatus, at: Int64) -> [PushDeviceEvent] {
        (acceptedToken, acceptedRevision) = (report.token, report.revision)
        // The app may have set another token or description meanwhile.
        isConfirmed = report.token == token && report.details == details
        defer { reportedAt = nil }
        // The server reported a newer status while its response was on its way.
        if let reportedAt, at < reportedAt { return [] }
        let wasSuspended = self.status.isSuspended
        let events = change(status, at: at)
        switch status {
        case .unknown: return events
        case .registered: return events + (wasSuspended ? [.resumed] : []) + [.registered]
        case .suspended(let reason): return events + [.suspended(reason)]
        }
    }

    /// The server rejected a report.
    mutating func tokenRefused(_ report: Report, _ error: PushError) -> [PushDeviceEvent] {
        guard report.token == token, report.details == details else { return [] }
        isRefused = true
        return [.registrationFailed(error)] + change(.unknown, at: nil)
    }

    /// The server reported a change of the status.
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

    /// The server does not know the device any more, or the device was signed out.
    mutating func deviceLost() -> [PushDeviceEvent] {
        (acceptedToken, acceptedRevision, reportedAt) = (nil, nil, nil)
        (isConfirmed, isRefused) = (false, false)
        return change(.unknown, at: nil)
    }

    private mutating func change(_ status: PushDeviceStatus, at: Int64?) -> [PushDeviceEvent] {
        let isOther = status != self.status
        (self.status, statusAt) = (status, at)
        return isOther ? [.statusChanged(status)] : []
    }
}
