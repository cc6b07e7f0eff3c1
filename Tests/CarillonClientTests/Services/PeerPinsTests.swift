import Testing

@testable import CarillonClient

/// Which identity of another device is accepted.
struct PeerPinsTests {
    @Test func `the first identity is accepted, and another one is not until the app accepts it`() {
        var pins = PeerPins(ownUser: "ada")
        #expect(pins.presented([1], reportedUser: nil, at: 1) == .first)
        #expect(pins.presented([1], reportedUser: nil, at: 2) == .known)
        #expect(pins.accepted() == false)
        #expect(pins.presented([2], reportedUser: nil, at: 3) == .changed(isNew: true))
        #expect(pins.presented([2], reportedUser: nil, at: 4) == .changed(isNew: false))
        #expect(pins.presented([1], reportedUser: nil, at: 5) == .known)
        #expect(pins.accepted() == true)
        #expect(pins.presented([2], reportedUser: nil, at: 6) == .known)
        #expect(pins.presented([1], reportedUser: nil, at: 7) == .changed(isNew: true))
    }

    @Test func `a user's device pins for its own user, whatever user is named`() {
        var pins = PeerPins(ownUser: "ada")
        #expect(pins.presented([1], reportedUser: "ben", at: 1) == .first)
        #expect(pins.presented([2], reportedUser: "zed", at: 2) == .changed(isNew: true))
        pins.ownUser = "ben"
        #expect(pins.presented([2], reportedUser: nil, at: 3) == .first)
        #expect(pins.visible.map(\.user) == ["ben"])
        pins.ownUser = "ada"
        #expect(pins.presented([1], reportedUser: nil, at: 4) == .known, "the user has signed in again")
        #expect(pins.visible.map(\.offered) == [[2]])
    }

    @Test func `a server pins each user of a device`() {
        var pins = PeerPins(ownUser: "")
        #expect(pins.presented([1], reportedUser: "ada", at: 1) == .first)
        #expect(pins.presented([2], reportedUser: "ben", at: 2) == .first)
        for _ in 0..<2 {
            #expect(pins.presented([1], reportedUser: "ada", at: 3) == .known)
            #expect(pins.presented([2], reportedUser: "ben", at: 4) == .known)
        }
        #expect(pins.presented([2], reportedUser: "ada", at: 5) == .changed(isNew: true))
        #expect(pins.presented([1], reportedUser: "ben", at: 6) == .changed(isNew: true))
        #expect(pins.visible.map(\.user) == ["ada", "ben"])
        // The app named no user: the current user of the device is known, and no offer is stored.
        pins.pins[0].offered = nil
        #expect(pins.presented([1], reportedUser: nil, at: 7) == .known)
        #expect(pins.presented([2], reportedUser: nil, at: 8) == .known)
        #expect(pins.visible.map(\.offered) == [nil, [1]])
        #expect(pins.presented([3], reportedUser: nil, at: 9) == .changed(isNew: true), "no user has it")
    }

    @Test func `a pin without a user counts for each user, and no named user replaces it`() {
        var pins = PeerPins(ownUser: "")
        #expect(pins.presented([1], reportedUser: nil, at: 1) == .first)
        #expect(pins.presented([2], reportedUser: "ada", at: 2) == .changed(isNew: true))
        #expect(pins.presented([1], reportedUser: "ada", at: 3) == .known)
        #expect(pins.presented([1], reportedUser: "zed", at: 4) == .known)
        #expect(pins.presented([2], reportedUser: "ben", at: 5) == .changed(isNew: true))
        let isOfBen = pins.accepted { $0 == [2] }
        #expect(isOfBen, "offered last by ben")
        #expect(pins.presented([2], reportedUser: "ben", at: 6) == .known)
        #expect(pins.presented([2], reportedUser: "ada", at: 7) == .changed(isNew: false))
        #expect(pins.presented([2], reportedUser: nil, at: 8) == .known, "it is ben's")
        #expect(pins.presented([3], reportedUser: nil, at: 9) == .changed(isNew: true))
    }

    @Test func `the identity that was shown is accepted, and no other`() {
        var pins = PeerPins(ownUser: "ada")
        _ = pins.presented([1], reportedUser: nil, at: 1)
        _ = pins.presented([2], reportedUser: nil, at: 2)
        _ = pins.presented([3], reportedUser: nil, at: 3)
        let (isFormer, isShown) = (pins.accepted { $0 == [2] }, pins.accepted { $0 == [3] })
        #expect(!isFormer && isShown, "another one came meanwhile")
        #expect(pins.presented([3], reportedUser: nil, at: 4) == .known)
    }

    @Test func `an offer to another user of this device is not accepted`() {
        var pins = PeerPins(ownUser: "ada")
        _ = pins.presented([1], reportedUser: nil, at: 1)
        _ = pins.presented([2], reportedUser: nil, at: 2)
        pins.ownUser = "ben"
        #expect(pins.accepted() == false)
        #expect(pins.visible.isEmpty)
        pins.ownUser = "ada"
        #expect(pins.accepted() == true)
    }
}
