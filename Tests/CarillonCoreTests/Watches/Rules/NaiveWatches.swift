import CarillonCore
import CarillonWire

/// Watches without counts and queries: each change reads the complete state.
struct NaiveWatches {
    struct Row {
        var serial: Int64
        var channel: Int64
        var revision: Int64 = 1
        var ping: Watch.Ping?
        var gone: CallAddress?
        var callbackID: String
        var secret: [UInt8]
        var token: [UInt8]
        var notified: PingFailure?
        var failures = 0
        var last: Watch.LastPing?
        var createdAt: Timestamp
        /// Of the ping.
        var work: Work?
    }

    struct Callback {
        var id: String
        var channel: Int64
        var address: CallAddress
        var secret: [UInt8]
        var token: [UInt8]
        var endedAt: Timestamp
        var attempts = 0
        var work: Work
    }

    struct Work {
        var number: Int64
        var due: Timestamp
        var fence: Int64 = 0
        var isHeld = false

        mutating func lease() {
            fence += 1
            isHeld = true
        }

        mutating func isAnswered(by answer: WatchOperation.Answer) -> Bool {
            guard isHeld, fence == answer.fence else { return false }
            isHeld = false
            return true
        }
    }

    var rows: [Row] = []
    var callbacks: [Callback] = []
    var formerUsers: Set<Int64> = []
    var deletedApps: Set<Int64> = []
    var noted: [Int] = []
    var dropped = 0
    private var serials: Int64 = 0
    private var pings: Int64 = 0

    mutating func commit(_ operation: WatchOperation, at now: Timestamp) -> String {
        switch operation {
        case .put(let request): return put(request, now)
        case .remove(let channel):
            let before = rows.count
            rows.removeAll { $0.channel == channel }
            return "\(rows.count < before)"
        case .lease(.ping(let serial)):
            guard let place = rows.firstIndex(where: { $0.serial == serial }) else { return "none" }
            rows[place].work?.lease()
            return "leased"
        case .lease(.callback(let id)):
            guard let place = callbacks.firstIndex(where: { $0.id == id }) else { return "none" }
            callbacks[place].work.lease()
            return "leased"
        case .pinged(let answer, let revision, let machine, let last, let due):
            return "\(pinged(answer, revision, machine, last, due))"
        case .called(let answer, let step, let attempts): return "\(called(answer, step, attempts))"
        case .vouch(let channel):
            guard let place = rows.firstIndex(where: { $0.channel == channel }), rows[place].notified != nil else {
                return "false"
            }
            rows[place].notified = nil
            rows[place].failures = 0
            rows[place].revision += 1
            return "true"
        case .end(let channels):
            for channel in channels { end(channel, now) }
            return "ended"
        case .setFormerUser(let channel, let isSet):
            if isSet { formerUsers.insert(channel) } else { formerUsers.remove(channel) }
            return "set"
        case .setDeleted(let app, let isSet):
            if isSet { deletedApps.insert(app) } else { deletedApps.remove(app) }
            return "set"
        case .spread:
            for place in rows.indices {
                guard let work = rows[place].work, let ping = rows[place].ping, work.due < now else { continue }
                let seconds = ping.intervalSeconds > 300 ? 300 : ping.intervalSeconds
                rows[place].work?.due = now.adding(milliseconds: work.number * 7919 % Int64(seconds * 1000))
            }
            return "spread"
        }
    }

    private mutating func put(_ request: WatchRequest, _ now: Timestamp) -> String {
        let channel = request.channel.rawValue
        let (device, app) = (WatchScenario.device(of: channel), WatchScenario.app(of: channel))
        if formerUsers.contains(channel) || deletedApps.contains(app) { return "gone" }
        guard let place = rows.firstIndex(where: { $0.channel == channel }) else {
            let ofDevice = rows.filter { WatchScenario.device(of: $0.channel) == device }
            let ofApp = rows.filter { WatchScenario.app(of: $0.channel) == app }
            if ofDevice.count + 1 > request.limits.perDevice { return "device" }
            if ofApp.count + 1 > request.limits.perApp { return "app" }
            serials += 1
            var row = Row(
                serial: serials, channel: channel, ping: request.ping, gone: request.disconnectAddress,
                callbackID: request.callbackID, secret: request.sealed.secret, token: request.sealed.token, createdAt: now)
            if request.ping != nil { row.work = newPing(request.firstDueAt ?? now) }
            rows.append(row)
            return "new \(serials)"
        }
        var row = rows[place]
        row.revision += 1
        row.gone = request.disconnectAddress
        row.token = request.sealed.token
        if request.renewsSecret { row.secret = request.sealed.secret }
        let isElsewhere = row.ping?.address.text != request.ping?.address.text
        if isElsewhere {
            row.failures = 0
            row.last = nil
        }
        row.ping = request.ping
        if request.ping == nil {
            row.work = nil
        } else {
            let due = request.firstDueAt ?? now
            if let work = row.work {
                if isElsewhere || due < work.due { row.work?.due = due }
            } else {
                row.work = newPing(due)
            }
        }
        rows[place] = row
        return "changed \(row.serial)"
    }

    private mutating func newPing(_ due: Timestamp) -> Work {
        pings += 1
        return Work(number: 2 * pings, due: due)
    }

    private mutating func pinged(
        _ answer: WatchOperation.Answer, _ revision: Int64, _ machine: PingMachine, _ last: Watch.LastPing?, _ due: Timestamp
    ) -> Bool {
        guard case .ping(let serial) = answer.work, let place = rows.firstIndex(where: { $0.serial == serial }),
            rows[place].work?.isAnswered(by: answer) == true
        else { return false }
        noted.append(answer.noted)
        guard rows[place].revision == revision else { return false }
        rows[place].notified = machine.notified
        rows[place].failures = machine.failures
        if let last { rows[place].last = last }
        rows[place].work?.due = due
        return true
    }

    private mutating func called(
        _ answer: WatchOperation.Answer, _ step: CallbackMachine.Step, _ attempts: Int
    ) -> Bool {
        guard case .callback(let id) = answer.work, let place = callbacks.firstIndex(where: { $0.id == id }),
            callbacks[place].work.isAnswered(by: answer)
        else { return false }
        noted.append(answer.noted)
        if case .retry(let moment) = step {
            callbacks[place].work.due = moment
            callbacks[place].attempts = attempts
        } else {
            callbacks.remove(at: place)
        }
        return true
    }

    private mutating func end(_ channel: Int64, _ now: Timestamp) {
        guard let place = rows.firstIndex(where: { $0.channel == channel }) else { return }
        let row = rows.remove(at: place)
        guard let address = row.gone else { return }
        let app = WatchScenario.app(of: channel)
        callbacks.append(
            Callback(
                id: row.callbackID, channel: channel, address: address, secret: row.secret, token: row.token, endedAt: now,
                work: Work(number: 0, due: now)))
        giveUpOldest(WatchScenario.callbacks.perPeer) {
            WatchScenario.app(of: $0.channel) == app && $0.address.peer == address.peer
        }
        giveUpOldest(WatchScenario.callbacks.perApp) { WatchScenario.app(of: $0.channel) == app }
    }

    private mutating func giveUpOldest(_ limit: Int, _ belongs: (Callback) -> Bool) {
        guard callbacks.count(where: belongs) > limit, let oldest = callbacks.firstIndex(where: belongs) else { return }
        callbacks.remove(at: oldest)
        dropped += 1
    }
}
