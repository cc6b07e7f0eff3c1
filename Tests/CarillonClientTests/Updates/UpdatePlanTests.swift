import CarillonBasics
import CarillonWire
import Testing

@testable import CarillonClient

/// The plans for all combinations of kind, mode, uncommitted changes, consent and outcome of the commit.
struct UpdatePlanTests {
    static let refresh = UpdatePayload.content(.refresh(object: "pump", parents: 0, children: 1))
    static let removal = UpdatePayload.content(.remove(object: "pump"))
    static let maintenance = UpdatePayload.status(.maintenance(from: 1000, until: 2000))
    static let enter = UpdatePlan.Step.enterMaintenance(from: 1000, until: 2000)
    static let replacement: [UpdatePlan.Step] = [
        .replaceDefinitions, .apply(.roots), .apply(.infrastructures), .setMode(.automatic),
    ]
    static let commits: [CommitOutcome?] = [nil, .committed, .refused("no"), .unreachable, .unknown]
    static let consents: [CommitConsent?] = [nil, .given, .declined, .unanswered]

    /// All situations of a mode.
    static func situations(_ mode: SyncMode, isDirty: Bool) -> [UpdateSituation] {
        commits.flatMap { commit in
            consents.map { UpdateSituation(mode: mode, isDirty: isDirty, consent: $0, commit: commit) }
        }
    }

    @Test(arguments: [SyncMode.automatic, .manual, .offline], [false, true])
    func `content is applied in automatic, manual and offline mode, with and without uncommitted changes`(
        _ mode: SyncMode, _ isDirty: Bool
    ) {
        for situation in Self.situations(mode, isDirty: isDirty) {
            for (payload, change) in [
                (Self.refresh, ContentChange.refresh(object: "pump", parents: 0, children: 1)),
                (Self.removal, .remove(object: "pump")), (.content(.roots), .roots),
                (.content(.infrastructures), .infrastructures), (.content(.resync), .resync),
            ] {
                #expect(UpdatePlan(for: payload, in: situation) == UpdatePlan([.apply(change)], .finish(.done())))
            }
        }
    }

    @Test func `while branches are prepared, content and definitions wait for another mode`() {
        for isDirty in [false, true] {
            for situation in Self.situations(.preparing, isDirty: isDirty) {
                for payload in [Self.refresh, Self.removal, .content(.resync), .definitions] {
                    let plan = UpdatePlan(for: payload, in: situation)
                    #expect(plan == UpdatePlan([], .finish(.deferred(until: .mode, reason: "preparing"))))
                }
            }
        }
    }

    @Test(arguments: [SyncMode.automatic, .manual, .offline])
    func `without uncommitted changes, definitions are replaced, then roots and infrastructures, and the mode is automatic`(
        _ mode: SyncMode
    ) {
        for situation in Self.situations(mode, isDirty: false) {
            #expect(UpdatePlan(for: .definitions, in: situation) == UpdatePlan(Self.replacement, .finish(.done())))
        }
    }

    @Test func `in automatic mode changes are committed before the definitions`() {
        func plan(_ commit: CommitOutcome?) -> UpdatePlan {
            UpdatePlan(for: .definitions, in: UpdateSituation(mode: .automatic, isDirty: true, commit: commit))
        }
        #expect(plan(nil) == UpdatePlan([], .commit))
        #expect(plan(.committed) == UpdatePlan([], .recheck))
        #expect(plan(.unknown) == UpdatePlan([], .recheck))
        #expect(plan(.refused("no")) == UpdatePlan([], .finish(.deferred(until: .committed, reason: "commit refused"))))
        let unreachable = UpdateOutcome.failed(isPermanent: false, reason: "the changes cannot be committed now")
        #expect(plan(.unreachable) == UpdatePlan([], .finish(unreachable)))
    }

    @Test(arguments: [SyncMode.manual, .offline])
    func `in manual and offline mode, definitions with uncommitted changes are deferred, or fail if the settings require it`(
        _ mode: SyncMode
    ) {
        for var situation in Self.situations(mode, isDirty: true) {
            let waits = UpdateOutcome.deferred(until: .committed, reason: "uncommitted changes")
            #expect(UpdatePlan(for: .definitions, in: situation) == UpdatePlan([.notifyConflict], .finish(waits)))
            situation.settings.failsConflicts = true
            let fails = UpdateOutcome.failed(isPermanent: false, reason: "uncommitted changes")
            #expect(UpdatePlan(for: .definitions, in: situation) == UpdatePlan([.notifyConflict], .finish(fails)))
        }
    }

    @Test(arguments: SyncMode.allCases, [false, true])
    func `during a maintenance definitions wait for its end`(_ mode: SyncMode, _ isDirty: Bool) {
        let situation = UpdateSituation(mode: mode, isDirty: isDirty, isInMaintenance: true)
        let waits = UpdateOutcome.deferred(until: .maintenanceOver, reason: "maintenance")
        #expect(UpdatePlan(for: .definitions, in: situation) == UpdatePlan([], .finish(waits)))
        // A maintenance that was announced and has not begun is no reason.
        let announced = UpdateSituation(mode: .manual, isDirty: false, isMaintenanceAnnounced: true)
        #expect(UpdatePlan(for: .definitions, in: announced).end == .finish(.done()))
    }

    @Test func `a maintenance ends a preparation first`() {
        for isDirty in [false, true] {
            for situation in Self.situations(.preparing, isDirty: isDirty) {
                #expect(UpdatePlan(for: Self.maintenance, in: situation) == UpdatePlan([.cancelPreparing], .recheck))
            }
        }
    }

    @Test(arguments: [SyncMode.automatic, .manual, .offline])
    func `a maintenance without uncommitted changes goes offline`(_ mode: SyncMode) {
        for situation in Self.situations(mode, isDirty: false) {
            #expect(UpdatePlan(for: Self.maintenance, in: situation) == UpdatePlan([Self.enter], .finish(.done())))
        }
    }

    @Test func `in automatic mode changes are committed before a maintenance, which goes offline with any result`() {
        for consent in Self.consents {
            func plan(_ commit: CommitOutcome?) -> UpdatePlan {
                UpdatePlan(
                    for: Self.maintenance,
                    in: UpdateSituation(mode: .automatic, isDirty: true, consent: consent, commit: commit))
            }
            #expect(plan(nil) == UpdatePlan([], .commit))
            #expect(plan(.committed) == UpdatePlan([Self.enter], .finish(.done())))
            #expect(plan(.refused("no")) == UpdatePlan([Self.enter], .finish(.done(code: "commit refused"))))
            #expect(plan(.unreachable) == UpdatePlan([Self.enter], .finish(.done(code: "commit unreachable"))))
            #expect(plan(.unknown) == UpdatePlan([Self.enter], .finish(.done(code: "commit unknown"))))
        }
    }

    @Test func `a maintenance that has ended asks for nothing`() {
        for mode in [SyncMode.automatic, .manual, .offline, .preparing] {
            let situation = UpdateSituation(mode: mode, isDirty: true, isOver: true)
            #expect(UpdatePlan(for: Self.maintenance, in: situation) == UpdatePlan([], .finish(.done())))
        }
        #expect(UpdatePayload.status(.maintenance(from: nil, until: 5)).isOver(at: 5))
        #expect(!UpdatePayload.status(.maintenance(from: nil, until: 5)).isOver(at: 4))
        #expect(!UpdatePayload.status(.maintenance(from: 1, until: nil)).isOver(at: .max))
    }

    @Test(arguments: [SyncMode.manual, .offline])
    func `in manual and offline mode, a maintenance commits changes only with consent, and goes offline with any answer`(
        _ mode: SyncMode
    ) {
        func plan(_ consent: CommitConsent?, _ commit: CommitOutcome?) -> UpdatePlan {
            UpdatePlan(
                for: Self.maintenance, in: UpdateSituation(mode: mode, isDirty: true, consent: consent, commit: commit))
        }
        for commit in Self.commits {
            #expect(plan(nil, commit) == UpdatePlan([Self.enter], .askUser))
            #expect(plan(.declined, commit) == UpdatePlan([Self.enter], .finish(.done(code: "commit declined"))))
            #expect(plan(.unanswered, commit) == UpdatePlan([Self.enter], .finish(.done(code: "commit unanswered"))))
        }
        #expect(plan(.given, nil) == UpdatePlan([], .commit))
        #expect(plan(.given, .committed) == UpdatePlan([Self.enter], .finish(.done())))
        #expect(plan(.given, .refused("no")) == UpdatePlan([Self.enter], .finish(.done(code: "commit refused"))))
        #expect(plan(.given, .unreachable) == UpdatePlan([Self.enter], .finish(.done(code: "commit unreachable"))))
        #expect(plan(.given, .unknown) == UpdatePlan([Self.enter], .finish(.done(code: "commit unknown"))))
    }

    @Test func `the end of a maintenance is done, with one or without`() {
        for mode in SyncMode.allCases {
            for isDirty in [false, true] {
                let without = UpdateSituation(mode: mode, isDirty: isDirty)
                #expect(UpdatePlan(for: .status(.over), in: without) == UpdatePlan([], .finish(.done())))
                for isBegun in [false, true] {
                    let with = UpdateSituation(
                        mode: mode, isDirty: isDirty, isInMaintenance: isBegun, isMaintenanceAnnounced: true)
                    #expect(UpdatePlan(for: .status(.over), in: with) == UpdatePlan([.finishMaintenance], .finish(.done())))
                }
            }
        }
    }

    @Test func `a notification raises no dialog, other popups do, in any mode`() {
        for mode in SyncMode.allCases {
            for isDirty in [false, true] {
                for situation in Self.situations(mode, isDirty: isDirty) {
                    for attachment in [nil, Popup.Attachment.object("pump")] {
                        let quiet = Popup(style: .notification, title: "t", attachment: attachment)
                        #expect(
                            UpdatePlan(for: .popup(quiet), in: situation)
                                == UpdatePlan([.notify(quiet)], .finish(.done())))
                        for style in [Popup.Style.emergency, .failure, .important] {
                            let popup = Popup(style: style, title: "t", attachment: attachment)
                            #expect(UpdatePlan(for: .popup(popup), in: situation) == UpdatePlan([], .show(popup)))
                        }
                    }
                    #expect(UpdatePlan(for: .open(.object([])), in: situation) == UpdatePlan([], .callHandler))
                }
            }
        }
    }
}
