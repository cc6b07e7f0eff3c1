import CarillonCore
import CarillonWire
import TestSupport
import Testing

struct RandomWatchTests {
    /// How often each operation must happen, by its result.
    private static let least = [
        "new": 100, "changed": 200, "gone": 40, "device": 20, "app": 15, "pinged true": 50, "pinged false": 100,
        "called true": 60, "called false": 60, "vouch true": 4, "vouch false": 100,
    ]

    /// A watch or a callback, as a line of text.
    private static func line(_ watch: Watch, _ id: String?, _ work: TableWatches.WorkRow?) -> String {
        let ping = watch.ping.map { "\($0.address.text) \($0.intervalSeconds)" } ?? "-"
        let last = watch.lastPing.map { "\($0)" } ?? "-"
        let due = work.map { "\($0.queue.peer) \($0.dueAt.milliseconds) \($0.lease.fence) \($0.lease.isHeld)" } ?? "-"
        return """
            watch \(watch.serial.rawValue) \(watch.channel.rawValue) \(watch.revision) \(ping) \
            \(watch.disconnectAddress?.text ?? "-") \(id ?? "-") \(watch.sealed.secret) \(watch.sealed.token) \
            \(watch.machine) \(last) \(watch.createdAt.milliseconds) \(due)
            """
    }

    private func lines(_ tables: TableWatches) -> [String] {
        let watches = tables.watches.sorted { $0.key < $1.key }.map { serial, watch in
            Self.line(
                watch, tables.callbackIDs[serial], tables.number(of: .ping(serial)).flatMap { tables.work[$0] })
        }
        let callbacks = tables.callbacks.sorted { $0.key < $1.key }.map { _, row in
            let callback = row.callback
            let work = tables.number(of: .callback(callback.webhookID)).flatMap { tables.work[$0] }
            return Self.line(
                callback.webhookID, callback.channel.rawValue, callback.address, callback.sealed, callback.endedAt,
                row.attempts, work?.dueAt, work?.lease)
        }
        return watches + callbacks
    }

    private func lines(_ naive: NaiveWatches) -> [String] {
        let watches = naive.rows.sorted { $0.serial < $1.serial }.map { row in
            let app = AppSerial(WatchScenario.app(of: row.channel))
            let watch = Watch(
                serial: WatchSerial(row.serial), revision: row.revision, channel: ChannelSerial(row.channel),
                device: DeviceSerial(WatchScenario.device(of: row.channel)), app: app, channelID: Sample.channelID,
                ping: row.ping, disconnectAddress: row.gone, sealed: Watch.Sealed(secret: row.secret, token: row.token),
                machine: PingMachine(notified: row.notified, failures: row.failures), lastPing: row.last,
                dueAt: row.work?.due,
                createdAt: row.createdAt)
            let work = row.work.map {
                TableWatches.WorkRow(
                    kind: .ping, subject: row.serial, queue: CallbackQueue(app, row.ping?.address.peer ?? "-"),
                    dueAt: $0.due,
                    lease: StoredLease(fence: $0.fence, isHeld: $0.isHeld))
            }
            return Self.line(watch, row.callbackID, work)
        }
        let callbacks = naive.callbacks.map { callback in
            Self.line(
                callback.id, callback.channel, callback.address,
                Watch.Sealed(secret: callback.secret, token: callback.token), callback.endedAt, callback.attempts,
                callback.work.due, StoredLease(fence: callback.work.fence, isHeld: callback.work.isHeld))
        }
        return watches + callbacks
    }

    private static func line(
        _ id: String, _ channel: Int64, _ address: CallAddress, _ sealed: Watch.Sealed, _ endedAt: Timestamp,
        _ attempts: Int, _ dueAt: Timestamp?, _ lease: StoredLease?
    ) -> String {
        """
        callback \(id) \(channel) \(address.text) \(sealed.secret) \(sealed.token) \(endedAt.milliseconds) \(attempts) \
        \(dueAt?.milliseconds ?? -1) \(lease?.fence ?? -1) \(lease?.isHeld ?? false)
        """
    }

    /// The counts of apps according to the rows.
    private func usage(_ naive: NaiveWatches) -> [AppSerial: WatchUsage] {
        var usage: [AppSerial: WatchUsage] = [:]
        for row in naive.rows { usage[AppSerial(WatchScenario.app(of: row.channel)), default: WatchUsage()].watches += 1 }
        for callback in naive.callbacks {
            usage[AppSerial(WatchScenario.app(of: callback.channel)), default: WatchUsage()].callbacks += 1
        }
        return usage
    }

    private func work(_ naive: NaiveWatches) -> [WatchOperation.Work] {
        let pings = naive.rows.filter { $0.work != nil }.map { WatchOperation.Work.ping($0.serial) }
        let callbacks = naive.callbacks.map { WatchOperation.Work.callback($0.id) }
        return pings + callbacks
    }

    @Test func `random changes of watches have their effect`() throws {
        var scenario = WatchScenario(SeededRandom.forTest())
        var (naive, tables) = (NaiveWatches(), TableWatches())
        var counted: [String: Int] = [:]
        var turns = ScenarioTurns(6000)
        while turns.next(
            unless: ScenarioTurns.untried(counted, least: Self.least).isEmpty && naive.dropped >= 8
                && naive.noted.count >= 100)
        {
            let operation = try scenario.next(work(naive))
            let result = naive.commit(operation, at: scenario.now)
            let ruled = tables.commit(operation, at: scenario.now)
            guard ruled == result, lines(tables) == lines(naive), tables.usage == usage(naive), tables.noted == naive.noted,
                tables.dropped == naive.dropped
            else {
                Issue.record("step \(turns.begun), \(operation): \(ruled) instead of \(result)")
                return
            }
            if case .lease(let key) = operation, let number = tables.number(of: key), let row = tables.work[number] {
                let revision = row.kind == .ping ? tables.watches[row.subject]?.revision ?? 0 : 0
                scenario.leases.append((work: key, fence: row.lease.fence, revision: revision))
            }
            count(operation, result, &counted)
        }
        let untried = ScenarioTurns.untried(counted, least: Self.least)
        #expect(untried.isEmpty, "\(counted)")
        #expect(naive.dropped >= 8)
        #expect(naive.noted.count >= 100)
    }

    private func count(_ operation: WatchOperation, _ result: String, _ counted: inout [String: Int]) {
        switch operation {
        case .put: counted[String(result.prefix { $0 != " " }), default: 0] += 1
        case .pinged: counted["pinged \(result)", default: 0] += 1
        case .called: counted["called \(result)", default: 0] += 1
        case .vouch: counted["vouch \(result)", default: 0] += 1
        case .remove, .lease, .end, .setFormerUser, .setDeleted, .spread: break
        }
    }
}
