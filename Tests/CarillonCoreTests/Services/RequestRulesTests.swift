import CarillonCore
import CarillonWire
import Testing

struct RequestRulesTests {
    private let rules = RequestRules(limits: RequestLimits(unfinished: 3, undelivered: 2))
    private let now = Sample.now
    private let consumer = DeviceSerial(1)
    private let provider = DeviceSerial(2)
    private let users = RequestUsers(consumer: .server, provider: UserID("ada"))

    private func request(_ number: Int64, ttl: Int64 = 60, _ change: (inout ServiceRequest) -> Void = { _ in })
        -> ServiceRequest
    {
        var request = ServiceRequest(
            id: ServiceRequestID(Bytes16(high: 6, low: UInt64(bitPattern: number))), envelope: Sample.id(number),
            consumer: consumer, consumerApp: AppSerial(1), provider: provider, providerApp: AppSerial(2),
            fingerprint: [7], expiresAt: now.adding(seconds: ttl))
        change(&request)
        return request
    }

    private func facts(_ requests: ServiceRequest...) -> RequestFacts {
        var facts = RequestFacts()
        facts.users[RequestPair(consumer: consumer, provider: provider)] = users
        for request in requests {
            facts.requests[request.serial] = request
            facts.usedIDs.insert(request.id)
        }
        return facts
    }

    private func made(_ request: ServiceRequest) -> RequestStep { .made(request, between: users) }

    // MARK: Questions

    @Test func `a new request reads its id, its users and the data of its consumer`() {
        let questions = rules.questions(for: [made(request(1)), made(request(2))])
        var expected = RequestQuestions()
        expected.candidates = [.init(request(1)), .init(request(2))]
        #expect(questions == expected)
        #expect(Set(expected.candidates.map(\.id)) == [request(1).id, request(2).id])
        #expect(Set(expected.candidates.map(\.pair)) == [RequestPair(consumer: consumer, provider: provider)])
    }

    @Test func `each other step reads its request`() {
        let questions = rules.questions(for: [
            .received(RequestSerial(1)), .unwanted(RequestSerial(2)),
            .finished(RequestSerial(3), replyHash: nil, at: now),
        ])
        var expected = RequestQuestions()
        expected.requests = [RequestSerial(1), RequestSerial(2), RequestSerial(3)]
        #expect(questions == expected)
        #expect(rules.questions(for: []) == RequestQuestions())
    }

    // MARK: New requests

    @Test func `a new request is inserted as it was made`() {
        let new = request(1)
        let (results, changes) = rules.decide([made(new)], knowing: facts())
        var expected = RequestChanges()
        expected.made = [new]
        #expect(results == [true])
        #expect(changes == expected)
    }

    @Test func `an id counts once, in the store and in a batch`() {
        var again = request(2)
        again.id = request(1).id
        #expect(!rules.counts(made(again), knowing: facts(request(1))))
        let (results, changes) = rules.decide([made(request(1)), made(again)], knowing: facts())
        #expect(results == [true, false])
        #expect(changes.made == [request(1)])
    }

    @Test func `a request counts only between the users that it was allowed for`() {
        let step = made(request(1))
        let pair = RequestPair(consumer: consumer, provider: provider)
        var changed = facts()
        #expect(rules.counts(step, knowing: changed))
        changed.users[pair] = RequestUsers(consumer: .server, provider: UserID("bob"))
        #expect(!rules.counts(step, knowing: changed))
        changed.users[pair] = RequestUsers(consumer: .server, provider: nil)
        #expect(!rules.counts(step, knowing: changed))
        changed.users[pair] = nil
        #expect(!rules.counts(step, knowing: changed))
        changed.users[RequestPair(consumer: provider, provider: consumer)] = users
        #expect(!rules.counts(step, knowing: changed), "the other way round")
    }

    @Test func `a consumer has a limited number of unfinished requests`() {
        var few = facts()
        few.unfinished = [consumer: 2, provider: 9]
        #expect(rules.counts(made(request(1)), knowing: few))
        let (results, changes) = rules.decide([made(request(1)), made(request(2))], knowing: few)
        #expect(results == [true, false])
        #expect(changes.made == [request(1)])
        few.unfinished[consumer] = 3
        #expect(!rules.counts(made(request(1)), knowing: few))
    }

    @Test func `a result in a batch makes room for another request, unless it was abandoned`() {
        var full = facts(request(1), request(2) { $0.isAbandoned = true })
        full.unfinished[consumer] = 3
        func counts(_ number: Int64) -> Bool {
            let finished = RequestStep.finished(RequestSerial(number), replyHash: nil, at: now)
            return rules.decide([finished, made(request(9))], knowing: full).results == [true, true]
        }
        #expect(counts(1))
        #expect(!counts(2), "it was not counted")
    }

    @Test func `the limits of a server are those of its documentation`() {
        let rules = RequestRules()
        var known = facts(request(1))
        known.unfinished[consumer] = 999
        #expect(rules.counts(made(request(2)), knowing: known))
        known.unfinished[consumer] = 1000
        #expect(!rules.counts(made(request(2)), knowing: known))
        known.undelivered[consumer] = 999
        #expect(rules.cancel(RequestSerial(1), at: now, knowing: known)?.forgotten.isEmpty == true)
        known.undelivered[consumer] = 1000
        #expect(rules.cancel(RequestSerial(1), at: now, knowing: known)?.forgotten[consumer] == 1)
    }

    // MARK: Steps

    /// Which of received, unwanted, a result and an end without a result count.
    private func counted(_ request: ServiceRequest) -> [Bool] {
        let steps = [
            RequestStep.received(request.serial), .unwanted(request.serial),
            .finished(request.serial, replyHash: [1], at: now), .finished(request.serial, replyHash: nil, at: now),
        ]
        return steps.map { rules.counts($0, knowing: facts(request)) }
    }

    @Test func `the state of a request determines which steps count`() {
        #expect(counted(request(1)) == [true, true, true, true])
        #expect(counted(request(1) { $0.state = .received }) == [false, true, true, true])
        #expect(counted(request(1) { $0.isUnwanted = true }) == [true, false, true, true])
        #expect(counted(request(1) { $0.state = .finished }) == [false, false, false, false])
    }

    @Test func `a request that the server ends has no other result`() {
        #expect(counted(request(1) { $0.fault = .userMismatch }) == [false, false, false, true])
        #expect(counted(request(1) { $0.isAbandoned = true }) == [false, false, false, true])
        #expect(
            counted(
                request(1) {
                    $0.fault = .userMismatch
                    $0.state = .finished
                }) == [false, false, false, false])
    }

    @Test func `no step counts for a request that is not there`() {
        let unknown = RequestSerial(2)
        for step in [
            RequestStep.received(unknown), .unwanted(unknown), .finished(unknown, replyHash: nil, at: now),
        ] { #expect(!rules.counts(step, knowing: facts(request(1)))) }
    }

    @Test func `the deadline of a request does not refuse a step`() {
        let late = now.adding(seconds: 61)
        #expect(rules.counts(.finished(RequestSerial(1), replyHash: [1], at: late), knowing: facts(request(1))))
    }

    @Test func `steps of a batch leave one change for each request`() {
        let (first, second) = (RequestSerial(1), RequestSerial(2))
        let (results, changes) = rules.decide(
            [
                .received(first), .unwanted(first), .received(first), .received(second),
                .finished(first, replyHash: [1], at: now), .finished(first, replyHash: [2], at: now), .unwanted(first),
            ], knowing: facts(request(1), request(2)))
        #expect(results == [true, true, false, true, true, false, false])
        var expected = RequestChanges()
        expected.changed[first] = RequestChanges.Change(
            state: .finished, isUnwanted: true,
            finish: RequestChanges.Finish(
                replyHash: [1], isUndelivered: false, forgottenAt: now.adding(seconds: 86_400), notesServedTime: true))
        expected.changed[second] = RequestChanges.Change(state: .received, isUnwanted: false)
        #expect(changes == expected)
    }

    @Test func `steps follow a request that the same batch makes`() {
        let serial = RequestSerial(1)
        let (results, changes) = rules.decide([.received(serial), made(request(1)), .received(serial)], knowing: facts())
        #expect(results == [false, true, true])
        #expect(changes.made == [request(1)])
        #expect(changes.changed == [serial: RequestChanges.Change(state: .received, isUnwanted: false)])
    }

    @Test(arguments: [(86_399, 86_400), (86_400, 86_400), (86_401, 86_401)] as [(Int64, Int64)])
    func `a finished request is remembered for a day, or until its deadline`(ttl: Int64, remembered: Int64) {
        let step = RequestStep.finished(RequestSerial(1), replyHash: nil, at: now)
        let changes = rules.decide([step], knowing: facts(request(1, ttl: ttl))).changes
        let finish = changes.changed[RequestSerial(1)]?.finish
        #expect(finish?.forgottenAt == now.adding(seconds: remembered))
        #expect(finish?.replyHash == nil && finish?.isUndelivered == false && finish?.notesServedTime == true)
    }

    // MARK: Cancellations

    @Test func `a request that was not delivered is finished, and its id is remembered for ten minutes`() {
        let changes = rules.cancel(
            RequestSerial(1), at: now, knowing: facts(request(1, ttl: 100_000) { $0.isUnwanted = true }))
        var expected = RequestChanges()
        expected.changed[RequestSerial(1)] = RequestChanges.Change(
            state: .finished, isUnwanted: true,
            finish: RequestChanges.Finish(
                replyHash: nil, isUndelivered: true, forgottenAt: now.adding(seconds: 600), notesServedTime: false))
        #expect(changes == expected)
    }

    @Test func `a request is cancelled once`() {
        let finished = facts(request(1) { $0.state = .finished })
        #expect(rules.cancel(RequestSerial(1), at: now, knowing: finished) == nil)
        #expect(rules.cancel(RequestSerial(2), at: now, knowing: finished) == nil, "there is no such request")
        let ending = facts(
            request(1) {
                $0.state = .received
                $0.isAbandoned = true
                $0.fault = .userMismatch
            })
        #expect(rules.cancel(RequestSerial(1), at: now, knowing: ending) != nil)
    }

    @Test(arguments: [(0, nil), (1, nil), (2, 1), (4, 3)] as [(Int, Int?)])
    func `beyond a number of ids of cancelled requests the oldest are forgotten`(remembered: Int, forgotten: Int?) {
        var known = facts(request(1))
        known.undelivered = [consumer: remembered, provider: 99]
        let changes = rules.cancel(RequestSerial(1), at: now, knowing: known)
        #expect(changes?.forgotten[consumer] == forgotten)
        #expect(changes?.forgotten[provider] == nil)
    }

    // MARK: Ends

    @Test func `another user abandons the requests of a device, and fails those to it`() {
        let atOnce = Timestamp(milliseconds: 0)
        let changes = rules.end(of: consumer, because: .userChanged)
        var expected = RequestChanges()
        expected.endings = [.abandon(of: consumer, dueAt: atOnce), .fail(to: consumer, .userMismatch, dueAt: atOnce)]
        #expect(changes == expected)
    }

    @Test(arguments: [RequestEndReason.deviceDeleted, .serverRemoved])
    func `a removed device removes its requests, and those to it fail`(reason: RequestEndReason) {
        let atOnce = Timestamp(milliseconds: 0)
        let changes = rules.end(of: provider, because: reason)
        var expected = RequestChanges()
        expected.endings = [.remove(of: provider), .fail(to: provider, .applicationNotFound, dueAt: atOnce)]
        #expect(changes == expected)
    }

    @Test func `a finished request is forgotten when it is due, and has been finished for a day of service`() {
        let cutoff = rules.cutoff(by: RetentionTime(now: now, served: 100_000))
        #expect(cutoff == RetentionCutoff(wall: now, served: 100_000 - 86_400 - 120))
    }
}
