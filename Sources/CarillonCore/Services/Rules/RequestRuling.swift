/// The requests of a batch while it is decided: the facts from the store, changed by the earlier steps of the batch.
struct RequestRuling {
    private let limits: RequestLimits
    private var facts: RequestFacts
    private(set) var changes = RequestChanges()

    init(limits: RequestLimits, facts: RequestFacts) {
        self.limits = limits
        self.facts = facts
    }

    func counts(_ step: RequestStep) -> Bool {
        switch step {
        case .made(let request, let users):
            !facts.usedIDs.contains(request.id) && facts.users[request.pair] == users
                && facts.unfinished[request.consumer, default: 0] < limits.unfinished
        case .received(let serial):
            facts.requests[serial].map { $0.state == .waiting && $0.goesOn } ?? false
        case .unwanted(let serial):
            facts.requests[serial].map { $0.state != .finished && $0.goesOn && !$0.isUnwanted } ?? false
        case .finished(let serial, let replyHash, _):
            // A request that the server ends accepts no result of its provider.
            facts.requests[serial].map { $0.state != .finished && (replyHash == nil || $0.goesOn) } ?? false
        }
    }

    /// Returns whether the step is valid.
    mutating func perform(_ step: RequestStep) -> Bool {
        guard counts(step) else { return false }
        switch step {
        case .made(let request, _):
            make(request)
        case .received(let serial):
            change(serial) { $0.state = .received }
        case .unwanted(let serial):
            change(serial) { $0.isUnwanted = true }
        case .finished(let serial, let replyHash, let now):
            finish(serial, replyHash, at: now)
        }
        return true
    }

    private mutating func make(_ request: ServiceRequest) {
        facts.usedIDs.insert(request.id)
        facts.requests[request.serial] = request
        facts.unfinished[request.consumer, default: 0] += 1
        changes.made.append(request)
    }

    private mutating func finish(_ serial: RequestSerial, _ replyHash: [UInt8]?, at now: Timestamp) {
        guard let request = facts.requests[serial] else { return }
        let remembered = now.adding(seconds: ServiceRequest.rememberedSeconds)
        let finish = RequestChanges.Finish(
            replyHash: replyHash, isUndelivered: false, forgottenAt: max(request.expiresAt, remembered),
            notesServedTime: true)
        change(serial, finish) { $0.state = .finished }
        if !request.isAbandoned { facts.unfinished[request.consumer]? -= 1 }
    }

    private mutating func change(
        _ serial: RequestSerial, _ finish: RequestChanges.Finish? = nil, _ update: (inout ServiceRequest) -> Void
    ) {
        guard var request = facts.requests[serial] else { return }
        update(&request)
        facts.requests[serial] = request
        changes.changed[serial] = RequestChanges.Change(
            state: request.state, isUnwanted: request.isUnwanted, finish: finish)
    }
}

extension ServiceRequest {
    /// Whether the request continues until its deadline: the server did not decide to end it earlier.
    fileprivate var goesOn: Bool { fault == nil && !isAbandoned }
}
