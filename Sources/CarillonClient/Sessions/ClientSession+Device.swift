import CarillonWire

/// What is said to the server of this install's push token, by HTTP beside the socket, and what the server says of it.
extension ClientSession {
    // MARK: Facts from the app

    mutating func pushTokenSet(_ token: String, at now: ContinuousClock.Instant) -> [SessionAction] {
        let isOther = device.tokenSet(token)
        deviceReporting.changed()
        return (isOther ? [.write(.saveDevice(device))] : []) + reportDevice(at: now)
    }

    mutating func pushDetailsSet(_ details: PushDeviceDetails, at now: ContinuousClock.Instant) -> [SessionAction] {
        let isOther = device.detailsSet(details)
        deviceReporting.changed()
        return (isOther ? [.write(.saveDevice(device))] : []) + reportDevice(at: now)
    }

    // MARK: Reports

    /// Says what is to be said, unless it is under way or waits.
    mutating func reportDevice(at now: ContinuousClock.Instant) -> [SessionAction] {
        guard phase == .live, let identity = registration.identity, var report = device.report,
            deviceReporting.isReady(at: now)
        else { return [] }
        deviceReporting.began()
        if namesRevisions { report.revision = report.name }
        return [.reportDevice(report, identity)]
    }

    /// - Parameter of: Whose report it was: the install may be another device since.
    mutating func reportAccepted(
        _ report: PushDeviceMachine.Report, of identity: DeviceIdentity, _ status: PushDeviceStatus, since: Int64,
        at now: ContinuousClock.Instant
    ) -> [SessionAction] {
        deviceReporting.ended()
        guard identity.device == registration.identity?.device else { return reportDevice(at: now) }
        deviceReporting.succeeded()
        let events = device.tokenAccepted(report, status, at: since)
        return [.write(.saveDevice(device)), .notifyDevice(events)] + reportDevice(at: now)
    }

    mutating func reportRefused(
        _ report: PushDeviceMachine.Report, of identity: DeviceIdentity, _ error: PushError,
        at now: ContinuousClock.Instant
    ) -> [SessionAction] {
        deviceReporting.ended()
        guard identity.device == registration.identity?.device else { return reportDevice(at: now) }
        let events = device.tokenRefused(report, error)
        return [.write(.saveDevice(device)), .notifyDevice(events)] + reportDevice(at: now)
    }

    mutating func reportFailed(
        retryAfter: Duration?, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        deviceReporting.failed(retryAfter: retryAfter, at: now, random: random)
        return []
    }

    // MARK: Facts from the server

    mutating func deviceStatusReceived(_ frame: DeviceStatusFrame, answered: Int?) -> [SessionAction] {
        let answer = MessageAnswer(id: frame.version, code: ResultCode.delivered)
        if answered != nil { return [.send(answer.frame)] }
        guard let status = PushDeviceStatus(frame.status, frame.reason) else {
            // A status of a later version.
            return [.write(.saveAnswer(answer)), .send(answer.frame)]
        }
        let events = device.statusReported(status, at: frame.at)
        return [.write(.saveDevice(device)), .write(.saveAnswer(answer)), .send(answer.frame), .notifyDevice(events)]
    }

    /// The device is another one from now on, or none.
    mutating func pushDeviceLost() -> [SessionAction] {
        let events = device.deviceLost()
        return [.write(.saveDevice(device)), .notifyDevice(events)]
    }
}

extension PushDeviceStatus {
    /// As the server writes it; nil for one that is not known.
    init?(_ name: String, _ reason: String?) {
        switch name {
        case "registered": self = .registered
        case "suspended": self = .suspended(PushDeviceSuspension(rawValue: reason ?? ""))
        default: return nil
        }
    }

    var name: String {
        switch self {
        case .unknown: "unknown"
        case .registered: "registered"
        case .suspended: "suspended"
        }
    }

    var reason: String? {
        if case .suspended(let reason) = self { reason.rawValue } else { nil }
    }
}
