import CarillonCore
import CarillonWire
import TestSupport
import Testing

/// ``RegistrationRules`` beside ``NaiveRegistrations``.
struct RandomRegistrationTests {
    private static let start = RegistrationSample.now
    /// The required number of each result.
    private static let least = [
        "stored": 600, "handed over": 25, "app full": 300, "address full": 15, "contested": 40, "said": 1000,
        "changed": 300, "same": 200, "removed": 500, "open": 30, "opened": 300, "full": 15,
    ]

    private func next(_ serials: [Int64], at now: Timestamp, _ random: inout SeededRandom) -> RegistrationOperation {
        let device = serials.randomElement(using: &random) ?? 1
        let token: UInt8? = Int.random(in: 0..<5, using: &random) == 0 ? nil : UInt8.random(in: 0..<4, using: &random)
        let user: UserClaim? =
            switch Int.random(in: 0..<6, using: &random) {
            case 0: .signedOut
            case 1, 2: .signedIn(RegistrationSample.user(Int.random(in: 0..<2, using: &random)))
            default: nil
            }
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<6:
            let isAnonymous = Int.random(in: 0..<4, using: &random) == 0
            let isSecret = !isAnonymous && Bool.random(using: &random)
            var request = RegistrationOperation.Request(app: Int64.random(in: 1...2, using: &random))
            request.secret = isSecret ? UInt8.random(in: 0..<5, using: &random) : nil
            request.address = isAnonymous ? UInt32.random(in: 0..<3, using: &random) : nil
            if !isAnonymous {
                if Int.random(in: 0..<3, using: &random) > 0 { request.token = .some(token) }
                request.user = user
            }
            return .register(request)
        case 6..<12: return .say(device, token: token, confirms: Int.random(in: 0..<4, using: &random) > 0, user: user)
        case 12: return .stop(device)
        case 13: return .die(device)
        case 14: return .resume(device)
        case 15..<18:
            let cutoff = now.adding(milliseconds: Int64.random(in: -400_000...0, using: &random))
            return .remove(device, unlessSeenAfter: Bool.random(using: &random) ? cutoff : nil)
        default: return .open(device, UInt64.random(in: 0..<4, using: &random))
        }
    }

    /// The compared values of a device.
    private struct Line: Equatable {
        var app: Int64
        var token: UInt8?
        var status: NaiveRegistrations.Status
        var user: Int?
        var news: Int
        /// Of the token, today.
        var tokenTransfers: Int
        var channels: Int
    }

    private func lines(_ naive: NaiveRegistrations, _ now: Timestamp) -> [Int64: Line] {
        var lines: [Int64: Line] = [:]
        for device in naive.devices {
            var tokenTransfers = 0
            if let token = device.token {
                let taken = NaiveRegistrations.Taken(app: device.app, token: token, day: now.seconds / 86_400)
                tokenTransfers = naive.tokenTransfers[taken, default: 0]
            }
            lines[device.serial] = Line(
                app: device.app, token: device.token, status: device.status, user: device.user, news: device.news,
                tokenTransfers: tokenTransfers, channels: device.channels.count)
        }
        return lines
    }

    private func lines(_ tables: TableRegistrations, _ now: Timestamp) -> [Int64: Line] {
        var lines: [Int64: Line] = [:]
        for (serial, row) in tables.devices {
            let registration = tables.profiles[serial] ?? DeviceRegistration(device: serial, at: row.device.createdAt)
            let token = registration.profile.address?.token.bytes.last
            let user = registration.user.flatMap { user in (0..<9).first { RegistrationSample.user($0) == user } }
            let isOfToday = token != nil && registration.takenOn == now.seconds / 86_400
            lines[serial.rawValue] = Line(
                app: row.device.app.rawValue, token: token, status: status(registration.status), user: user,
                news: tables.news[serial, default: 0], tokenTransfers: isOfToday ? registration.tokenTransfers : 0,
                channels: tables.channels.count { $0.device == serial })
        }
        return lines
    }

    private func status(_ status: DeviceStatus) -> NaiveRegistrations.Status {
        switch status {
        case .registered: .registered
        case .suspended(.tokenTaken): .taken
        case .suspended(.tokenDead): .dead
        case .suspended(.byOperator): .stopped
        }
    }

    @Test func `random registrations have the effect of their report`() {
        var random = SeededRandom.forTest()
        var (naive, tables) = (NaiveRegistrations(), TableRegistrations())
        var now = Self.start
        var counted: [String: Int] = [:]
        var turns = ScenarioTurns(8000)
        while turns.next(
            unless: ScenarioTurns.untried(counted, least: Self.least).isEmpty && !tables.released.isEmpty)
        {
            let step = turns.begun
            now = now.adding(milliseconds: Int64.random(in: 1...60_000, using: &random))
            if Int.random(in: 0..<150, using: &random) == 0 { now = now.adding(seconds: 86_400) }
            let operation = next(naive.devices.map(\.serial), at: now, &random)
            let result = naive.commit(operation, at: now)
            let ruled = tables.commit(operation, at: now)
            let (expected, found) = (lines(naive, now), lines(tables, now))
            guard ruled == result, found == expected else {
                Issue.record("step \(step), \(operation): \(ruled) instead of \(result), \(found) instead of \(expected)")
                return
            }
            for app in Int64(1)...2 {
                let count = naive.devices.count { $0.app == app }
                guard tables.counts[AppSerial(app), default: 0] == count else {
                    Issue.record("step \(step), \(operation): the devices of app \(app) are not \(count)")
                    return
                }
            }
            counted[result, default: 0] += 1
        }
        let untried = ScenarioTurns.untried(counted, least: Self.least)
        #expect(untried.isEmpty, "\(counted)")
        #expect(!tables.released.isEmpty)
    }
}
