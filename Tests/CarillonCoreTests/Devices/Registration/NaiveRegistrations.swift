import CarillonCore
import CarillonWire

/// Devices of two apps, changed step after step, without knowledge of ``RegistrationRules``: which device has which token, and
/// how often each token moved from one device to another on each day.
struct NaiveRegistrations {
    enum Status {
        case registered, taken, dead, stopped
    }

    struct Device {
        var serial: Int64
        var app: Int64
        var secret: UInt8?
        var address: UInt32?
        var seenAt: Timestamp
        var token: UInt8?
        var user: Int?
        var status = Status.registered
        /// Changes of the status.
        var news = 0
        var channels: [UInt64] = []
    }

    struct Taken: Hashable {
        var app: Int64
        var token: UInt8
        var day: Int64
    }

    static let devicesPerApp = 6
    static let devicesPerAddress = 2
    static let channelsPerDevice = 2

    private(set) var devices: [Device] = []
    private(set) var tokenTransfers: [Taken: Int] = [:]
    private var lastSerial: Int64 = 0

    mutating func commit(_ operation: RegistrationOperation, at now: Timestamp) -> String {
        switch operation {
        case .register(let request): return register(request, at: now)
        case .say(let serial, let token, let confirms, let user):
            guard let place = place(of: serial) else { return "none" }
            return say(place, .some(token), confirms, user, at: now) ? "said" : "contested"
        case .stop(let serial): return setStatus(of: serial) { $0 == .stopped ? nil : .stopped }
        case .die(let serial): return setStatus(of: serial) { $0 == .registered ? .dead : nil }
        case .resume(let serial): return setStatus(of: serial) { $0 == .registered ? nil : .registered }
        case .remove(let serial, let cutoff):
            guard let place = place(of: serial), cutoff.map({ devices[place].seenAt <= $0 }) ?? true else { return "none" }
            devices.remove(at: place)
            return "removed"
        case .open(let serial, let channel):
            guard let place = place(of: serial) else { return "none" }
            if devices[place].channels.contains(channel) { return "open" }
            guard devices[place].channels.count < Self.channelsPerDevice else { return "full" }
            devices[place].channels.append(channel)
            return "opened"
        }
    }

    private func place(of serial: Int64) -> Int? { devices.firstIndex { $0.serial == serial } }

    private mutating func register(_ request: RegistrationOperation.Request, at now: Timestamp) -> String {
        if let place = devices.firstIndex(where: { $0.app == request.app && $0.secret != nil && $0.secret == request.secret }
        ) {
            let before = devices[place].user
            guard say(place, request.token, request.token != nil, request.user, at: now) else { return "contested" }
            return devices[place].user == before ? "stored" : "handed over"
        }
        if devices.count(where: { $0.app == request.app }) >= Self.devicesPerApp { return "app full" }
        if let address = request.address, devices.count(where: { $0.address == address }) >= Self.devicesPerAddress {
            return "address full"
        }
        if case .some(.some(let token)) = request.token, holder(of: token, request.app) != nil,
            tokenTransfers(of: token, request.app, now) >= 5
        {
            return "contested"
        }
        lastSerial += 1
        devices.append(
            Device(serial: lastSerial, app: request.app, secret: request.secret, address: request.address, seenAt: now))
        _ = say(devices.count - 1, request.token, request.token != nil, request.user, at: now)
        return "stored"
    }

    private func holder(of token: UInt8, _ app: Int64) -> Int? { devices.firstIndex { $0.app == app && $0.token == token } }

    private func tokenTransfers(of token: UInt8, _ app: Int64, _ now: Timestamp) -> Int {
        tokenTransfers[Taken(app: app, token: token, day: now.seconds / 86_400), default: 0]
    }

    /// - Parameter word: Nil if the report does not mention the token, and `.some(nil)` if the device has none.
    /// - Returns: False if it is refused.
    private mutating func say(_ place: Int, _ claim: UInt8??, _ confirms: Bool, _ user: UserClaim?, at now: Timestamp)
        -> Bool
    {
        let app = devices[place].app
        if let token = claim, token != devices[place].token {
            if let token, let other = holder(of: token, app) {
                guard tokenTransfers(of: token, app, now) < 5 else { return false }
                tokenTransfers[Taken(app: app, token: token, day: now.seconds / 86_400), default: 0] += 1
                devices[other].token = nil
                if [.registered, .dead].contains(devices[other].status) { change(other, .taken) }
            }
            devices[place].token = token
        }
        if confirms, devices[place].token != nil, [.taken, .dead].contains(devices[place].status) {
            change(place, .registered)
        }
        switch user {
        case .signedIn(let user): devices[place].user = (0..<9).first { RegistrationSample.user($0) == user }
        case .signedOut: devices[place].user = nil
        case nil: break
        }
        return true
    }

    private mutating func change(_ place: Int, _ status: Status) {
        devices[place].status = status
        devices[place].news += 1
    }

    private mutating func setStatus(of serial: Int64, _ next: (Status) -> Status?) -> String {
        guard let place = place(of: serial) else { return "none" }
        guard let status = next(devices[place].status) else { return "same" }
        change(place, status)
        return "changed"
    }
}

enum RegistrationOperation {
    struct Request {
        var app: Int64
        var secret: UInt8?
        var address: UInt32?
        /// Nil if the device has no report.
        var token: UInt8??
        var user: UserClaim?
    }

    case register(Request)
    case say(Int64, token: UInt8?, confirms: Bool, user: UserClaim?)
    case stop(Int64)
    case die(Int64)
    case resume(Int64)
    case remove(Int64, unlessSeenAfter: Timestamp?)
    case open(Int64, UInt64)
}
