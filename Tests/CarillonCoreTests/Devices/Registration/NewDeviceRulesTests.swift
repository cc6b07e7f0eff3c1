import CarillonCore
import CarillonWire
import Testing

/// Which devices are stored, and their rows.
struct NewDeviceRulesTests {
    private typealias Sample = RegistrationSample
    private let now = Sample.now

    private func facts(devices: Int = 0, isKeyInForce: Bool = false, known: Device? = nil) -> NewDeviceFacts {
        NewDeviceFacts(
            app: .init(serial: Sample.app, devices: devices, isKeyInForce: isKeyInForce), known: known)
    }

    private func insert(_ new: NewDevice, limit: Int = 5, _ facts: NewDeviceFacts) -> RegistrationRules.Insertion {
        RegistrationRules.insert(new, limit: limit, at: now, knowing: facts, credential: Sample.credential)
    }

    private func decided(_ insertion: RegistrationRules.Insertion) throws -> (device: Device, changes: RegistrationChanges) {
        guard case .decided(let device, let changes) = insertion else { throw Undecided() }
        return (device, changes)
    }

    private func refusal(_ insertion: RegistrationRules.Insertion) -> ErrorCode? {
        guard case .refused(.refused(let refusal)) = insertion else { return nil }
        return refusal.code
    }

    private struct Undecided: Error {}

    private func isNotAllowed(_ insertion: RegistrationRules.Insertion) -> Bool {
        if case .refused(.notAllowed) = insertion { true } else { false }
    }

    // MARK: Limits

    @Test func `an app and a key that is in force are needed`() throws {
        #expect(isNotAllowed(insert(Sample.new(), NewDeviceFacts(app: nil))))
        let keyed = Sample.new(key: KeyID(3))
        #expect(isNotAllowed(insert(keyed, facts())))
        #expect(try decided(insert(keyed, facts(isKeyInForce: true))).changes.new?.key == KeyID(3))
    }

    @Test func `an app has at most as many devices as its limit`() throws {
        #expect(try decided(insert(Sample.new(), facts(devices: 4))).changes.devices == 1)
        #expect(refusal(insert(Sample.new(), facts(devices: 5))) == .devicesTooMany)
        let again = try decided(insert(Sample.new(registration: 1), facts(devices: 5, known: Sample.known())))
        #expect(again.changes.devices == 0)
    }

    @Test func `an address has at most as many anonymous devices as its limit`() throws {
        let new = Sample.new(address: 9)
        guard case .needsDevices(let quota) = insert(new, facts()) else { throw Undecided() }
        #expect(quota.address == .v4(9))
        var known = facts()
        known.devicesOfAddress = 2
        #expect(try decided(insert(new, known)).changes.new?.address == .v4(9))
        known.devicesOfAddress = 3
        guard case .refused(.addressFull) = insert(new, known) else { throw Undecided() }
        // The limit of the app comes first, and an existing device does not count.
        #expect(refusal(insert(new, limit: 0, facts())) == .devicesTooMany)
        #expect(try decided(insert(new, facts(known: Sample.known()))).changes.new == nil)
    }

    // MARK: Rows

    @Test func `a new device is stored, and counted`() throws {
        let new = Sample.new(registration: 4)
        let (device, changes) = try decided(insert(new, facts()))
        #expect(device.id == new.proposed && device.app == Sample.app && device.createdAt == now && device.seenAt == now)
        #expect(device.credentialHash == Sample.credentialHash(of: new.proposed))
        var expected = RegistrationChanges(in: Sample.app)
        expected.new = .init(device: device, key: nil, registration: SecretHash(of: [4]), address: nil)
        expected.devices = 1
        #expect(changes == expected)
    }

    @Test func `a device that registers again gets another credential`() throws {
        let (device, changes) = try decided(insert(Sample.new(registration: 4), facts(known: Sample.known())))
        #expect(device.serial == Sample.device && device.credentialHash == Sample.credentialHash(of: device.id))
        var expected = RegistrationChanges(in: Sample.app)
        expected.renewed = device
        #expect(changes == expected)
    }

    @Test func `facts of a token count if the device had another`() throws {
        let new = Sample.new(registration: 4, reporting: Sample.profile(1))
        var known = facts(known: Sample.known())
        known.stored = Sample.registration(Sample.device, 1)
        known.token = TokenFacts(holder: known.stored)
        #expect(try decided(insert(new, known)).changes.profiles.isEmpty)
        known.stored = Sample.registration(Sample.device, 2)
        known.token = TokenFacts(holder: Sample.registration(DeviceSerial(9), 1))
        let taken = try decided(insert(new, known)).changes.profiles.map(\.registration.device)
        #expect(taken == [DeviceSerial(9), Sample.device])
        #expect(try decided(insert(Sample.new(reporting: Sample.profile(nil)), facts())).changes.profiles.isEmpty)
    }

    @Test func `the report of a new device is its first row, for which nothing waits`() throws {
        var known = facts()
        known.token = TokenFacts(released: .init(count: 3, day: now.seconds / 86_400))
        let new = Sample.new(reporting: Sample.profile(1), user: .signedIn(Sample.user(1)))
        let (_, changes) = try decided(insert(new, known))
        let profile = try #require(changes.profiles.first)
        #expect(changes.profiles.count == 1)
        #expect(profile.isFirst && profile.isOfNewDevice && !profile.isStatusChanged && profile.userChange == nil)
        #expect(profile.registration.tokenTransfers == 3 && profile.registration.user == Sample.user(1))
    }

    @Test func `token transfers are those of the device that has the token`() throws {
        var known = facts()
        let day = now.seconds / 86_400
        let holder = Sample.registration(DeviceSerial(9), 1, tokenTransfers: 1)
        known.token = TokenFacts(holder: holder, released: .init(count: 4, day: day))
        let new = Sample.new(reporting: Sample.profile(1))
        let (_, changes) = try decided(insert(new, known))
        #expect(changes.profiles.map(\.registration.device) == [DeviceSerial(9), DeviceSerial(0)])
        #expect(changes.profiles.map(\.registration.tokenTransfers) == [0, 2])
        #expect(changes.profiles.map(\.isStatusChanged) == [true, false])
        #expect(changes.profiles.map(\.isOfNewDevice) == [false, true])
        #expect(changes.released == nil)
        known.token.holder?.tokenTransfers = 5
        #expect(refusal(insert(new, known)) == .pushTokenContested)
    }

    @Test(
        arguments: [(nil, RegistrationChanges.ChangeOfUser.first), (2, .replaced), (1, nil)]
            as [(Int?, RegistrationChanges.ChangeOfUser?)])
    func `a device that registers again can be another user's`(
        before: Int?, change: RegistrationChanges.ChangeOfUser?
    ) throws {
        var known = facts(known: Sample.known())
        known.stored = Sample.registration(user: before)
        let new = Sample.new(registration: 4, user: .signedIn(Sample.user(1)))
        let (_, changes) = try decided(insert(new, known))
        #expect(changes.profiles.first?.userChange == change)
        #expect(changes.profiles.first?.registration.device == (change == nil ? nil : Sample.device))
        #expect(changes.renewed?.serial == Sample.device)
    }
}
