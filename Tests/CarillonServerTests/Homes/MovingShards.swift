import CarillonCore
import CarillonServer
import CarillonWire
import Crypto
import Foundation
import NIOHTTP1
import Synchronization
import TestStores
import TestSupport

/// A server with two homes, whose shards move without pause while phones and senders use it.
final class MovingShards: Sendable {
    static let app = "com.example.app"

    /// How often each kind of event must happen before the scenario may end.
    static let least = [
        "moves": 60, "messages": 250, "replacements": 15, "keys used again": 10, "messages taken back": 5,
        "messages of TTL 0, offered": 5, "crossings": 30, "later subscriptions": 3, "updates": 20, "withdrawals": 2,
        "service requests": 20, "cancelled service requests": 1, "wakes": 8, "deleted devices": 2, "absences": 6,
        "envelopes by socket": 60, "envelopes by stream": 60, "envelopes by poll": 60, "envelopes by updatePoll": 60,
    ]

    let server: WatchedServer
    let store: any Store
    let http: ScenarioHTTP
    let record: ScenarioRecord
    let appSerial: AppSerial
    let clientKey: String
    /// The key of senders and publishers.
    let sender: String
    let phones: [ScenarioPhone]
    let messages = ScenarioMessages()
    let items = ScenarioItems()
    let updates = ScenarioUpdates()
    let requests = ScenarioRequests()

    /// The phones that provide services. They do not go away.
    var providers: [ScenarioPhone] { [phones[1], phones[5]] }

    private static let ways: [[ScenarioPhone.Way]] =
        [[.socket], [.socket], [.stream], [.stream], [.poll], [.updatePoll]]
        + Array(repeating: ScenarioPhone.Way.allCases, count: 4)

    init(_ server: WatchedServer, _ store: any Store, _ http: ScenarioHTTP, seed: UInt64) async throws {
        (self.server, self.store, self.http) = (server, store, http)
        record = ScenarioRecord(seed: seed)
        let domain = server.domain
        let app = try AppID.checked(Self.app)
        appSerial = try await domain.apps.create(app).serial
        clientKey = try await domain.keys.createKey(role: .client, app: app, name: nil).secret.text
        sender = try await domain.keys.createKey(role: .sender, app: app, name: nil).secret.text
        let admin = try await domain.keys.createKey(role: .admin, app: nil, name: nil).secret.text
        let signer = TokenSigner.es256(P256.Signing.PrivateKey())
        for (document, body) in [
            ("users", #"{"jwks":{"keys":[\#(try signer.jwk("one"))]}}"#), ("items", ScenarioItems.rules),
            ("parameters", #"{"parameters":{"region":"string"}}"#), ("alert", #"{"title":"News"}"#),
        ] {
            _ = try await http.repeating(.init(.PUT, "/v1/apps/\(Self.app)/\(document)", key: admin, body), expecting: 200)
        }
        let expiry = Int(Date().timeIntervalSince1970) + 3600
        let userToken = try signer.token(
            #"{"sub":"ada","aud":"\#(Self.app)","exp":\#(expiry)}"#, header: ["kid": "\"one\""])
        var phones: [ScenarioPhone] = []
        for (number, ways) in Self.ways.enumerated() {
            phones.append(
                try await ScenarioPhone(
                    number, ways, region: number.isMultiple(of: 2) ? "north" : "south", clientKey: clientKey,
                    userToken: userToken, http: http, port: server.port, record: record))
        }
        self.phones = phones
        for provider in providers { try await offer(provider) }
        for phone in phones where phone.number.isMultiple(of: 2) {
            for item in ScenarioItems.all { try await subscribe(phone, to: item, key: item.name) }
        }
    }

    /// Lets everything happen.
    func run(seconds: Int) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.record.measureLag() }
            group.addTask { await self.moveAgainAndAgain() }
            for phone in phones { group.addTask { await phone.run() } }
            await send(seconds: seconds)
            await settle()
            record.begin(.over)
        }
    }

    /// Lets senders send, for a time and until each kind of event has happened often enough.
    private func send(seconds: Int) async {
        await withTaskGroup(of: Void.self) { senders in
            for number in 0..<4 {
                senders.addTask {
                    var sender = ScenarioMessageSender(number, in: self)
                    await sender.run()
                }
            }
            for item in ScenarioItems.all { senders.addTask { await self.publish(item) } }
            senders.addTask { await self.subscribeAgainAndAgain() }
            senders.addTask { await self.publishUpdates() }
            senders.addTask { await self.askProviders() }
            for place in 0..<2 { senders.addTask { await self.wakeDevices(place) } }
            let (usual, most) = (Int64(seconds) * 1000, Int64(max(seconds * 3, 180)) * 1000)
            while record.isRunning {
                let time = record.now()
                if time > most || time > usual && untried.isEmpty { break }
                try? await Task.sleep(for: .milliseconds(100))
            }
            record.begin(.settling)
        }
    }

    /// The kinds of events that did not happen often enough.
    var untried: [String] { ScenarioTurns.untried(record.counts, least: Self.least) }

    // MARK: Moves

    /// Moves a shard of a phone, a new device, an item or the app, one after the other.
    private func moveAgainAndAgain() async {
        var random = SeededRandom(seed: record.seed)
        let homes = server.homes
        let parties = homes.indices.map { homes[$0].participant(on: NodeNumber(Int64($0) + 1), at: $0) }
        let move = ShardMove(homes: server.domain.homes, store: store)
        let shards =
            phones.map(\.shard) + ScenarioItems.all.map { Shard(of: appSerial, item: $0.name) } + [Shard(of: appSerial)]
        while !record.isOver {
            guard let shard = (shards + record.newestShards).randomElement(using: &random),
                let place = homes.firstIndex(where: { $0.home.has(shard) })
            else { return record.fault("a shard has no home") }
            let began = record.now()
            let result: String
            do {
                result = "\(try await move.move(shard, from: parties[place], to: parties[1 - place]))"
                record.count(result == "moved" ? "moves" : "moves that could not be done")
            } catch {
                result = "\(error)"
                record.fault("shard \(shard.number) cannot move from home \(place): \(error)")
            }
            record.add(.init(shard: shard, from: place, began: began, ended: record.now(), result: result))
            await Task.yield()
        }
    }

    // MARK: The end

    /// Waits until all expected entries arrived, or the time limit ends.
    private func settle() async {
        let began = record.now()
        while record.now() - began < record.allowance + 3000, !Task.isCancelled {
            try? await Task.sleep(for: .milliseconds(300))
            // A message that is delivered twice has some time for it.
            guard record.now() - began > 2000, findings().losses.isEmpty, phones.allSatisfy(\.hasSaidAll) else { continue }
            guard let unfinished = try? await unfinishedUpdates(), unfinished.isEmpty else { continue }
            return
        }
    }

    func findings() -> ScenarioFindings {
        var findings = ScenarioFindings(phones, record)
        messages.find(&findings)
        items.find(&findings)
        updates.find(&findings)
        requests.find(&findings)
        findings.findLosses()
        let messages = messages.all
        for phone in phones { findings.findFaults(of: phone.number, messages) }
        return findings
    }
}
