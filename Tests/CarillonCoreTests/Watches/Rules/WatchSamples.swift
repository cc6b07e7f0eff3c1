import CarillonCore
import CarillonWire

/// Values that tests of watches are made of.
enum WatchSample {
    static let now = Sample.now
    static let app = AppSerial(1)
    static let channel = WatchedChannel(
        serial: ChannelSerial(5), id: Sample.channelID, device: Sample.device, app: app)

    static func request(
        ping: String? = "http://one.example/ping", every seconds: Int = 60, due: Timestamp? = now, gone: String? = nil,
        secret: UInt8 = 1, token: UInt8 = 2, renews: Bool = false, limits: WatchLimits = WatchLimits()
    ) throws -> WatchRequest {
        WatchRequest(
            channel: channel.serial,
            ping: try ping.map { Watch.Ping(address: try CallAddress($0), intervalSeconds: seconds) }, firstDueAt: due,
            disconnectAddress: try gone.map { try CallAddress($0) },
            sealed: Watch.Sealed(secret: [secret], token: [token]), callbackID: "msg_1", renewsSecret: renews,
            limits: limits)
    }

    static func watch(
        ping: String? = "http://one.example/ping", due: Timestamp = now, notified: PingFailure? = .noConnection
    ) throws -> Watch {
        Watch(
            serial: WatchSerial(3), revision: 4, channel: channel.serial, device: channel.device, app: app,
            channelID: channel.id,
            ping: try ping.map { Watch.Ping(address: try CallAddress($0), intervalSeconds: 60) }, disconnectAddress: nil,
            sealed: Watch.Sealed(secret: [8], token: [9]), machine: PingMachine(notified: notified, failures: 2),
            lastPing: Watch.LastPing(at: now, failure: .noConnection, detail: "refused"), dueAt: ping == nil ? nil : due,
            createdAt: now.adding(seconds: -9))
    }

    static func end(
        _ work: Int64 = 6, fence: Int64 = 2, app: AppSerial = app, peer: String = "one.example:80", failures: Int = 0,
        at now: Timestamp = now
    ) -> WorkEnd {
        let due = DueWork(
            serial: work, kind: .callback, app: app, device: Sample.device, peer: peer, host: "one.example",
            isOnTrial: true, readyAt: now, servedAt: now)
        let item = LeasedCall(
            lease: WorkLease(work: work, fence: fence), due: due, health: EndpointHealth(), subject: .callback(callback()))
        return WorkEnd(
            of: item, at: now, health: EndpointHealth(isOnTrial: false, failures: failures), peerRestsUntil: now)
    }

    static func callback(_ serial: Int64 = 7, attempts: Int = 0) -> DisconnectCallback {
        DisconnectCallback(
            serial: serial, channel: channel.serial, address: address("one.example"),
            sealed: Watch.Sealed(secret: [], token: []), webhookID: "msg_7", reason: .revoked, endedAt: now,
            machine: CallbackMachine(attempts: attempts))
    }

    static func record(_ end: WorkEnd = WatchSample.end(), revision: Int64 = 4, last: Watch.LastPing? = nil) -> PingRecord {
        PingRecord(
            end: end, watch: WatchSerial(3), revision: revision, machine: PingMachine(notified: .tokenLost, failures: 1),
            lastPing: last, dueAt: now.adding(seconds: 60))
    }

    /// The facts of a watch that is leased.
    static func facts(
        fence: Int64 = 2, isHeld: Bool = true, revision: Int64 = 4, isPinged: Bool = true,
        notified: PingFailure? = .noConnection
    ) -> WatchFacts {
        var facts = WatchFacts()
        facts.leases = [6: StoredLease(fence: fence, isHeld: isHeld)]
        facts.states = [
            WatchSerial(3): WatchState(
                revision: revision, isPinged: isPinged, machine: PingMachine(notified: notified, failures: 2))
        ]
        facts.watches = [channel.serial: WatchSerial(3)]
        return facts
    }

    static func ending(_ number: Int64, _ host: String?, app: AppSerial = app) -> EndingWatch {
        EndingWatch(
            serial: WatchSerial(number), channel: ChannelSerial(100 + number), device: Sample.device, app: app,
            disconnectAddress: host.map(address), callbackID: "msg_\(number)",
            sealed: Watch.Sealed(secret: [1], token: [2]))
    }

    static func address(_ host: String) -> CallAddress {
        guard let address = try? CallAddress("http://\(host)") else { preconditionFailure("\(host) is no host") }
        return address
    }
}
