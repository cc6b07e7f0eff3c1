import CarillonCore
import CarillonWire
import Testing

/// The owner of a push token, and the devices that can receive pushes.
struct RegistrationRulesTests {
    private static let now = Timestamp(milliseconds: 1_800_000_000_000)
    private static let one = DeviceSerial(1)
    private static let other = DeviceSerial(2)

    private static func token(_ byte: UInt8) throws -> PushToken {
        try PushToken(
            hexadecimal: String(repeating: byte < 16 ? "0\(String(byte, radix: 16))" : String(byte, radix: 16), count: 32))
    }

    private static func profile(_ byte: UInt8?, _ environment: PushEnvironment = .production) throws -> DeviceProfile {
        var profile = DeviceProfile()
        if let byte {
            profile.address = .init(platform: .apple, token: try token(byte), environment: environment)
        }
        return profile
    }

    private static func registered(
        _ device: DeviceSerial, _ byte: UInt8?, at moment: Timestamp = now
    ) throws -> DeviceRegistration {
        let fresh = DeviceRegistration(device: device, at: moment)
        return try RegistrationRules.register(try profile(byte), over: fresh, tokenHolder: nil, at: moment).registration
    }

    @Test func `a first token is taken down`() throws {
        let fresh = DeviceRegistration(device: Self.one, at: Self.now)
        let decision = try RegistrationRules.register(try Self.profile(1), over: fresh, tokenHolder: nil, at: Self.now)
        #expect(decision.isChanged)
        #expect(!decision.isStatusChanged)
        #expect(decision.registration.addressRevision == 1)
        #expect(decision.registration.status == .registered)
    }

    @Test func `the same again changes nothing, within a day`() throws {
        let current = try Self.registered(Self.one, 1)
        let soon = Self.now.adding(seconds: 86_399)
        #expect(try !RegistrationRules.register(try Self.profile(1), over: current, tokenHolder: nil, at: soon).isChanged)
        let later = Self.now.adding(seconds: 86_400)
        let decision = try RegistrationRules.register(try Self.profile(1), over: current, tokenHolder: nil, at: later)
        #expect(decision.registration.confirmedAt == later)
        #expect(decision.registration.addressRevision == 1)
    }

    @Test func `another token is another address of the same device`() throws {
        let current = try Self.registered(Self.one, 1)
        let later = Self.now.adding(seconds: 60)
        let decision = try RegistrationRules.register(try Self.profile(2), over: current, tokenHolder: nil, at: later)
        #expect(decision.registration.device == Self.one)
        #expect(decision.registration.addressRevision == 2)
        #expect(decision.registration.confirmedAt == later)
        #expect(decision.displaced == nil)
    }

    @Test func `the other environment is another address`() throws {
        let current = try Self.registered(Self.one, 1)
        let decision = try RegistrationRules.register(
            try Self.profile(1, .sandbox), over: current, tokenHolder: nil, at: Self.now)
        #expect(decision.registration.addressRevision == 2)
    }

    @Test func `a device that presents a token receives it, and its former device is suspended without one`() throws {
        let holder = try Self.registered(Self.other, 1)
        let current = try Self.registered(Self.one, 2)
        let decision = try RegistrationRules.register(try Self.profile(1), over: current, tokenHolder: holder, at: Self.now)
        let displaced = try #require(decision.displaced)
        #expect(displaced.status == .suspended(.tokenTaken))
        #expect(displaced.profile.address == nil)
        #expect(displaced.profile.service == DeviceProfile.Service(platform: .apple, environment: .production))
        #expect(displaced.addressRevision == holder.addressRevision + 1)
        #expect(decision.registration.tokenTransfers == 1)
    }

    @Test func `the service of the last token stays until there is a token again`() throws {
        var profile = try Self.profile(1, .sandbox)
        profile.removeToken()
        profile.removeToken()
        #expect(profile.address == nil)
        #expect(profile.service == DeviceProfile.Service(platform: .apple, environment: .sandbox))
        profile.address = try Self.profile(2).address
        #expect(profile.formerService == nil && profile.service?.environment == .production)
        #expect(try Self.profile(nil).service == nil)
    }

    @Test func `a token is taken five times a day, and then again tomorrow`() throws {
        var holder = try Self.registered(Self.one, 1)
        var taker = try Self.registered(Self.other, nil)
        for _ in 1...RegistrationRules.tokenTransfersPerDay {
            let decision = try RegistrationRules.register(
                try Self.profile(1), over: taker, tokenHolder: holder, at: Self.now)
            (taker, holder) = (try #require(decision.displaced), decision.registration)
        }
        let (last, keeper) = (taker, holder)
        let refusal = #expect(throws: Refusal.self) {
            try RegistrationRules.register(try Self.profile(1), over: last, tokenHolder: keeper, at: Self.now)
        }
        #expect(refusal?.code == .pushTokenContested)
        let midnight = (Self.now.seconds / 86_400 + 1) * 86_400
        #expect(refusal?.retryAfterSeconds == Int(midnight - Self.now.seconds))
        let tomorrow = Timestamp(milliseconds: midnight * 1000)
        let decision = try RegistrationRules.register(try Self.profile(1), over: last, tokenHolder: keeper, at: tomorrow)
        #expect(decision.registration.tokenTransfers == 1)
    }

    @Test(arguments: [SuspensionReason.tokenDead, .tokenTaken])
    func `registering ends each suspension that it can end`(reason: SuspensionReason) throws {
        let current = try #require(
            RegistrationRules.suspend(try Self.registered(Self.one, 1), because: reason, at: Self.now))
        let later = Self.now.adding(seconds: 5)
        let decision = try RegistrationRules.register(try Self.profile(1), over: current, tokenHolder: nil, at: later)
        #expect(decision.registration.status == .registered)
        #expect(decision.registration.statusAt == later)
        #expect(decision.registration.confirmedAt == later)
        #expect(decision.isStatusChanged)
    }

    @Test func `values beside the address end no suspension, and confirm nothing`() throws {
        let current = try #require(
            RegistrationRules.suspend(try Self.registered(Self.one, 1), because: .tokenDead, at: Self.now))
        let later = Self.now.adding(seconds: 200_000)
        var said = current.profile
        said.locale = "de"
        let decision = try RegistrationRules.register(said, confirms: false, over: current, tokenHolder: nil, at: later)
        #expect(decision.registration.status == .suspended(.tokenDead))
        #expect(decision.registration.confirmedAt == current.confirmedAt)
        #expect(decision.registration.profile.locale == "de")
        // A device whose token was taken has no token again.
        let taken = try RegistrationRules.register(
            try Self.profile(2), over: try Self.registered(Self.other, nil), tokenHolder: try Self.registered(Self.one, 2),
            at: Self.now)
        let loser = try #require(taken.displaced)
        let again = try RegistrationRules.register(try Self.profile(nil), over: loser, tokenHolder: nil, at: later)
        #expect(again.registration.status == .suspended(.tokenTaken))
    }

    @Test func `another environment does not return token transfers`() throws {
        let taken = try RegistrationRules.register(
            try Self.profile(1), over: try Self.registered(Self.one, nil), tokenHolder: try Self.registered(Self.other, 1),
            at: Self.now)
        #expect(taken.registration.tokenTransfers == 1)
        let moved = try RegistrationRules.register(
            try Self.profile(1, .sandbox), over: taken.registration, tokenHolder: nil, at: Self.now)
        #expect(moved.registration.tokenTransfers == 1)
        let other = try RegistrationRules.register(
            try Self.profile(3), over: moved.registration, tokenHolder: nil, at: Self.now)
        #expect(other.registration.tokenTransfers == 0)
    }

    @Test func `a device that an operator suspended stays suspended`() throws {
        let current = try #require(
            RegistrationRules.suspend(try Self.registered(Self.one, 1), because: .byOperator, at: Self.now))
        let decision = try RegistrationRules.register(try Self.profile(2), over: current, tokenHolder: nil, at: Self.now)
        #expect(decision.registration.status == .suspended(.byOperator))
        #expect(decision.registration.profile.address == (try Self.profile(2)).address)
        #expect(!decision.isStatusChanged)
    }

    @Test func `an operator's suspension remains when the token is removed`() throws {
        let holder = try #require(
            RegistrationRules.suspend(try Self.registered(Self.other, 1), because: .byOperator, at: Self.now))
        let taker = try Self.registered(Self.one, nil)
        let decision = try RegistrationRules.register(try Self.profile(1), over: taker, tokenHolder: holder, at: Self.now)
        #expect(decision.displaced?.status == .suspended(.byOperator))
        #expect(decision.displaced?.profile.address == nil)
    }

    @Test func `a vendor's report about an earlier address is ignored`() throws {
        let current = try Self.registered(Self.one, 1)
        let earlier = current.addressRevision - 1
        #expect(RegistrationRules.suspend(current, because: .tokenDead, ofRevision: earlier, at: Self.now) == nil)
        #expect(
            RegistrationRules.suspend(current, because: .tokenDead, ofRevision: current.addressRevision, at: Self.now)
                != nil)
    }

    @Test func `a token that was confirmed after the vendor found it dead is alive`() throws {
        let current = try Self.registered(Self.one, 1)
        let before = Self.now.adding(milliseconds: -1)
        #expect(RegistrationRules.suspend(current, because: .tokenDead, knownSince: before, at: Self.now) == nil)
        let suspended = RegistrationRules.suspend(current, because: .tokenDead, knownSince: Self.now, at: Self.now)
        #expect(suspended?.status == .suspended(.tokenDead))
    }

    @Test func `an operator also suspends a suspended device, and no suspension occurs twice`() throws {
        let current = try Self.registered(Self.one, 1)
        let dead = try #require(RegistrationRules.suspend(current, because: .tokenDead, at: Self.now))
        #expect(RegistrationRules.suspend(dead, because: .tokenDead, at: Self.now) == nil)
        let byOperator = try #require(RegistrationRules.suspend(dead, because: .byOperator, at: Self.now))
        #expect(RegistrationRules.suspend(byOperator, because: .byOperator, at: Self.now) == nil)
        #expect(RegistrationRules.suspend(byOperator, because: .tokenDead, at: Self.now) == nil)
        #expect(RegistrationRules.resume(byOperator, at: Self.now)?.status == .registered)
        #expect(RegistrationRules.resume(current, at: Self.now) == nil)
    }

    @Test func `each change of the status is later than the one before, also by a clock that was set back`() throws {
        let first = try Self.registered(Self.one, 1)
        let early = Self.now.adding(seconds: -3600)
        let suspended = try #require(RegistrationRules.suspend(first, because: .byOperator, at: early))
        let resumed = try #require(RegistrationRules.resume(suspended, at: early))
        let again = try #require(RegistrationRules.suspend(resumed, because: .tokenDead, at: early))
        let registered = try RegistrationRules.register(try Self.profile(1), over: again, tokenHolder: nil, at: early)
        let moments = [first, suspended, resumed, again, registered.registration].map(\.statusAt.milliseconds)
        #expect(moments == (0...4).map { Self.now.milliseconds + $0 })
    }
}
