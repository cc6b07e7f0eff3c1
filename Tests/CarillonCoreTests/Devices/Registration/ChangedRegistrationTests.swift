import CarillonCore
import CarillonWire
import Testing

/// The rows that are written for a device that reports other values, is suspended, or is removed.
struct ChangedRegistrationTests {
    private typealias Sample = RegistrationSample
    private let now = Sample.now
    private var day: Int64 { now.seconds / 86_400 }

    private func facts(_ stored: DeviceRegistration?, _ token: TokenFacts? = TokenFacts()) -> RegistrationFacts {
        var facts = RegistrationFacts(device: Sample.device, app: Sample.app, createdAt: now, stored: stored)
        facts.token = token
        return facts
    }

    private func ruling(_ request: RegistrationRequest, _ facts: RegistrationFacts) throws -> RegistrationRules.Ruling {
        guard case .decided(let result) = RegistrationRules.change(request, at: now, knowing: facts) else {
            throw Undecided()
        }
        return try result.get()
    }

    private struct Undecided: Error {}

    // MARK: Rows

    @Test func `a device that reports the same values changes no row`() throws {
        let stored = Sample.registration(Sample.device, 1)
        let same = try ruling(.reports(stored.profile, confirms: true), facts(stored, nil))
        #expect(same.changes.isEmpty && !same.decision.isChanged)
        #expect(try ruling(.nothing, facts(nil, nil)).changes.isEmpty)
        let unchanged = unchanged(.reports(stored.profile, confirms: true), stored)
        #expect(unchanged?.decision == same.decision && unchanged?.confirms == true)
    }

    private func unchanged(_ request: RegistrationRequest, _ current: DeviceRegistration) -> RegistrationRules.Unchanged? {
        RegistrationRules.unchanged(by: request, over: current, at: now)
    }

    @Test func `a report of known values needs no facts, and confirms an address if it contains one`() {
        let (stored, silent) = (Sample.registration(Sample.device, 1), facts(nil).current)
        #expect(unchanged(.nothing, stored)?.confirms == false)
        #expect(unchanged(.reports(stored.profile, confirms: false), stored)?.confirms == false)
        #expect(unchanged(.reports(Sample.profile(nil), confirms: true), silent)?.confirms == false)
        #expect(unchanged(.reports(Sample.profile(2), confirms: true), stored) == nil)
        #expect(unchanged(.reports(Sample.profile(nil), confirms: true), stored) == nil)
        #expect(unchanged(.reports(stored.profile, confirms: true, user: .signedIn(Sample.user(1))), stored) == nil)
        #expect(unchanged(.becomes(stored), stored) == nil)
        var suspended = stored
        suspended.status = .suspended(.tokenDead)
        #expect(unchanged(.reports(stored.profile, confirms: true), suspended) == nil, "it is resumed")
    }

    @Test func `a device confirms its address if it reports the environment that the vendor corrected`() throws {
        var stored = Sample.registration(Sample.device, 1)
        let said = stored.profile
        stored.profile.address?.environment = .sandbox
        stored.reportedEnvironment = .production
        let same = try #require(unchanged(.reports(said, confirms: true), stored))
        #expect(same.confirms && same.decision.registration == stored)
        #expect(try ruling(.reports(said, confirms: true), facts(stored, nil)).changes.isEmpty, "no token is asked for")
        #expect(unchanged(.reports(Sample.profile(2), confirms: true), stored) == nil)
        // Without the correction the other environment is another address.
        stored.reportedEnvironment = nil
        #expect(unchanged(.reports(said, confirms: true), stored) == nil)
    }

    @Test func `the facts of a token are requested if it is another one`() throws {
        let stored = Sample.registration(Sample.device, 1)
        let says = RegistrationRequest.reports(Sample.profile(2), confirms: true)
        guard case .needsToken(let address, let app) = RegistrationRules.change(says, at: now, knowing: facts(stored, nil))
        else { throw Undecided() }
        #expect(address == Sample.address(2) && app == Sample.app)
        // The removal of a token is no transfer.
        #expect(try ruling(.reports(Sample.profile(nil), confirms: true), facts(stored, nil)).decision.isChanged)
    }

    @Test func `a token that is released is remembered if it was taken`() throws {
        for says in [Sample.profile(2), Sample.profile(nil)] {
            let taken = try ruling(
                .reports(says, confirms: true), facts(Sample.registration(Sample.device, 1, tokenTransfers: 2)))
            #expect(
                taken.changes.released
                    == .init(
                        app: Sample.app, token: Sample.token(1), tokenTransfers: .init(count: 2, day: day), forgotten: 10))
            let quiet = try ruling(.reports(says, confirms: true), facts(Sample.registration(Sample.device, 1)))
            #expect(quiet.changes.released == nil && quiet.changes.profiles.first?.isAddressChanged == true)
        }
        var moved = Sample.profile(1)
        moved.address?.environment = .sandbox
        let same = try ruling(
            .reports(moved, confirms: true), facts(Sample.registration(Sample.device, 1, tokenTransfers: 2)))
        #expect(same.changes.released == nil && same.changes.profiles.count == 1)
    }

    @Test func `the device that loses a token is written first, and its token is not released`() throws {
        let holder = Sample.registration(DeviceSerial(9), 1, tokenTransfers: 2)
        var suspended = holder
        suspended.status = .suspended(.byOperator)
        var dead = holder
        dead.status = .suspended(.tokenDead)
        let holders: [(DeviceRegistration, StatusChange?)] = [
            (holder, .suspended), (dead, .reasonChanged), (suspended, nil),
        ]
        for (holder, change) in holders {
            let taken = try ruling(.reports(Sample.profile(1), confirms: true), facts(nil, TokenFacts(holder: holder)))
            #expect(taken.changes.profiles.map(\.registration.device) == [DeviceSerial(9), Sample.device])
            #expect(taken.changes.profiles.map(\.statusChange) == [change, nil])
            #expect(taken.changes.profiles.map(\.isAddressChanged) == [false, true])
            #expect(taken.changes.profiles.map(\.isFirst) == [false, true])
            #expect(taken.changes.profiles.last?.registration.tokenTransfers == 3)
            #expect(taken.changes.released == nil)
        }
    }

    @Test func `a suspension begins a status, also in a first row`() throws {
        for stored in [nil, Sample.registration(Sample.device, 1)] {
            let known = facts(stored)
            let suspended = try #require(RegistrationRules.suspend(known.current, because: .byOperator, at: now))
            let changes = try ruling(.becomes(suspended), known).changes
            #expect(
                changes.profiles == [.init(registration: suspended, isFirst: stored == nil, statusChange: .suspended)])
            let resumed = try #require(RegistrationRules.resume(suspended, at: now))
            let again = try ruling(.becomes(resumed), facts(suspended)).changes
            #expect(again.profiles == [.init(registration: resumed, isFirst: false, statusChange: .resumed)])
        }
    }

    @Test func `a change of the status is a suspension, a resumption or another reason`() {
        let suspended = SuspensionReason.allCases.map { DeviceStatus.suspended($0) }
        for status in [.registered] + suspended { #expect(StatusChange(from: status, to: status) == nil) }
        for status in suspended {
            #expect(StatusChange(from: .registered, to: status) == .suspended)
            #expect(StatusChange(from: status, to: .registered) == .resumed)
            for other in suspended where other != status {
                #expect(StatusChange(from: status, to: other) == .reasonChanged)
            }
        }
        #expect([StatusChange.suspended, .resumed, .reasonChanged].map(\.isFollowed) == [true, true, false])
        #expect([StatusChange.suspended, .resumed, .reasonChanged].map(\.armsAgain) == [false, true, false])
    }

    @Test func `a refusal and a change of the user are passed on`() throws {
        let holder = Sample.registration(DeviceSerial(9), 1, tokenTransfers: RegistrationRules.tokenTransfersPerDay)
        let error = #expect(throws: Refusal.self) {
            try ruling(.reports(Sample.profile(1), confirms: true), facts(nil, TokenFacts(holder: holder)))
        }
        #expect(error?.code == .pushTokenContested)
        let out = try ruling(
            .reports(Sample.profile(nil), confirms: false, user: .signedOut), facts(Sample.registration(user: 1)))
        #expect(out.changes.profiles.first?.userChange == .replaced && out.decision.losesUser)
        let first = try ruling(
            .reports(Sample.profile(nil), confirms: false, user: .signedIn(Sample.user(1))), facts(nil))
        #expect(first.changes.profiles.first?.userChange == .first)
    }

    // MARK: Ends

    private func end(devices: Int = 3, token: UInt8? = nil, tokenTransfers: Int = 0) -> DeviceEndFacts {
        DeviceEndFacts(
            device: Sample.device, app: Sample.app, devicesOfApp: devices, seenAt: now, seenServed: 50,
            token: token.map(Sample.token), tokenTransfers: .init(count: tokenTransfers, day: day))
    }

    @Test func `a device that was seen after the cutoff stays`() {
        func isRemoved(_ milliseconds: Int64, _ served: Int64) -> Bool {
            let cutoff = RetentionCutoff(wall: now.adding(milliseconds: milliseconds), served: served)
            return RegistrationRules.end(unlessSeenAfter: cutoff, knowing: end()) != nil
        }
        #expect(isRemoved(0, 50))
        #expect(!isRemoved(-1, 50))
        #expect(!isRemoved(0, 49))
        #expect(isRemoved(1, 51))
    }

    @Test func `the end of a device is counted, and releases its token`() throws {
        let changes = try #require(RegistrationRules.end(knowing: end(token: 1, tokenTransfers: 1)))
        #expect(changes.removed == Sample.device && changes.devices == -1 && changes.app == Sample.app)
        #expect(changes.released?.token == Sample.token(1))
        #expect(changes.released?.tokenTransfers == .init(count: 1, day: day))
        #expect(RegistrationRules.end(knowing: end(token: 1))?.released == nil)
        #expect(RegistrationRules.end(knowing: end(tokenTransfers: 1))?.released == nil)
        #expect(RegistrationRules.end(knowing: end(devices: 1))?.devices == -1)
        #expect(RegistrationRules.end(knowing: end(devices: 0))?.devices == 0)
    }

    // MARK: Channels

    private func channel(_ serial: Int64 = 0, wake: WakeMode = .background, key: [UInt8]? = nil) -> PushChannel {
        PushChannel(
            serial: ChannelSerial(serial), device: Sample.device, app: Sample.app, id: channelID, name: nil, vapidKey: key,
            wake: wake, createdAt: now)
    }

    private var channelID: ChannelID { ChannelID(Bytes16(high: 3, low: 3)) }

    private func open(
        _ channel: PushChannel?, channels: Int = 0, isOfFormerUser: Bool = false, hasUser: Bool = false,
        wake: WakeMode? = nil, key: [UInt8]? = nil
    ) -> RegistrationRules.Opening {
        RegistrationRules.open(
            ChannelRequest(channelID, device: Sample.device, name: nil, vapidKey: key, wake: wake), limit: 2, at: now,
            knowing: OpenChannelFacts(
                app: Sample.app, channel: channel, isOfFormerUser: isOfFormerUser, channels: channels, hasUser: hasUser))
    }

    @Test func `a device has at most as many channels as its limit`() {
        #expect(open(nil, channels: 1) == .opened(channel(), isOfUser: false))
        #expect(open(nil, channels: 2) == .refused(.tooMany))
        #expect(open(nil, hasUser: true, wake: .alert, key: [1]) == .opened(channel(wake: .alert, key: [1]), isOfUser: true))
        let request = ChannelRequest(channelID, device: Sample.device, name: nil, vapidKey: nil, wake: nil)
        #expect(RegistrationRules.open(request, limit: 2, at: now, knowing: nil) == .refused(.deviceGone))
    }

    @Test func `an open channel wakes in another way if its restriction is presented`() {
        #expect(open(channel(5), channels: 2) == .found(channel(5)))
        #expect(open(channel(5), wake: .background) == .found(channel(5)))
        #expect(open(channel(5), wake: .alert) == .rewoken(channel(5, wake: .alert)))
        #expect(open(channel(5, key: [1]), wake: .alert) == .found(channel(5, key: [1])))
        #expect(open(channel(5, key: [1]), wake: .alert, key: [1]) == .rewoken(channel(5, wake: .alert, key: [1])))
        #expect(open(channel(5), isOfFormerUser: true, wake: .alert) == .refused(.ofFormerUser))
    }
}
