import Testing

@testable import CarillonClient

struct StepBatchTests {
    private typealias Base = ClientSessionTests

    private static func text(_ results: [Result<Void, PushError>]) -> [String] {
        results.map { if case .failure(let error) = $0 { error.message } else { "done" } }
    }

    @Test func `each step sees the steps before it, and a step that fails changes nothing`() {
        var batch = StepBatch(ClientSession(.init()))
        let first = batch.take { session in
            session.user.accepted = "ada"
            return [.wake, .write(.saveAcceptedUser("ada")), .write(.saveUser(nil))]
        }
        #expect(first == [.saveAcceptedUser("ada"), .saveUser(nil)])
        let second = batch.take { session throws(PushError) in
            session.user.accepted = "bob"
            throw PushError(.identifierInvalid, "no")
        }
        #expect(second.isEmpty)
        let third = batch.take { session in [.write(.saveAcceptedUser(session.user.accepted))] }
        #expect(third == [.saveAcceptedUser("ada")])
        #expect(batch.session.user.accepted == "ada")
        #expect(Self.text(batch.results) == ["done", "no", "done"])
        let actions: [SessionAction] = [
            .wake, .write(.saveAcceptedUser("ada")), .write(.saveUser(nil)), .write(.saveAcceptedUser("ada")),
        ]
        #expect(batch.actions == actions)
    }

    @Test func `a batch reports another scope and another user, compared with the session before its first step`() {
        var batch = StepBatch(ClientSession(.init(), restoring: Base.stored()))
        _ = batch.take { session in
            session.phase = .resting
            return []
        }
        #expect(!batch.isScopeChanged && !batch.isUserChanged)
        _ = batch.take { session in
            session.registration.identity = nil
            return []
        }
        #expect(batch.isScopeChanged && !batch.isUserChanged)
        _ = batch.take { session in
            session.registration.identity = Base.identity
            session.user.pending = .signedOut
            return []
        }
        #expect(batch.isScopeChanged && batch.isUserChanged)
        _ = batch.take { session in
            session.user.pending = nil
            return []
        }
        #expect(!batch.isScopeChanged && !batch.isUserChanged)
        _ = batch.take { session in
            session.user.accepted = "ada"
            return []
        }
        #expect(batch.isScopeChanged && batch.isUserChanged)
    }

    @Test func `another token of a pending user is another user and no other scope`() {
        var stored = Base.stored()
        stored.user = .signedIn("a")
        var batch = StepBatch(ClientSession(.init(), restoring: stored))
        _ = batch.take { session in
            session.user.pending = .signedIn("b")
            return []
        }
        #expect(!batch.isScopeChanged && batch.isUserChanged)
    }
}
