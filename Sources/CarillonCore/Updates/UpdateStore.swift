package import CarillonWire

/// Keeps updates, the bindings that they are for, and what became of each at each.
package protocol UpdateStore: Sendable {
    /// Sets what an app declares of its parameters, as a JSON document. Answers false when there is no such app any more.
    func putParameterRules(_ document: String, of app: AppSerial, at now: Timestamp) async throws -> Bool
    /// The document, if there is one, with a number that rises when it is set and when an update of the app is resumed. Nil where there is no
    /// such app.
    func parameterRules(of app: AppSerial) async throws -> (document: String?, version: Int64)?

    // MARK: Updates

    /// Writes an update at the end of its app's log, ends the one that it supersedes, and answers a repetition, in one transaction.
    func publishUpdate(_ wish: UpdateWish, at now: Timestamp) async throws -> UpdatePut
    /// The live updates of an app that are not paused, in ascending order.
    func liveUpdates(of app: AppSerial) async throws -> [Update]
    func update(_ id: UpdateID, of app: AppSerial) async throws -> Update?
    /// A page of an app's, from the latest on.
    func updates(of app: AppSerial, _ filter: UpdateFilter, before: UpdateSerial?, limit: Int) async throws -> [Update]
    /// The latest content of an app that expired; zero where there is none.
    func lastExpiredContent(of app: AppSerial) async throws -> UpdateSerial
    /// Content of an app after a place that expired; nil where it is not known any more, or is more than the limit.
    func expiredContent(of app: AppSerial, after place: UpdateSerial, limit: Int) async throws -> [Update]?
    /// Ends an update that lives: no device is given it any more. Answers false when it did not live.
    func withdrawUpdate(_ update: Update, by key: KeyID, at now: Timestamp) async throws -> Bool
    /// Ends the pause of a live update: every binding is held against the log anew.
    ///
    /// - Parameter limit: The bytes of the audiences of the app's live updates that are not paused.
    func resumeUpdate(
        _ update: Update, by key: KeyID, audienceBytes limit: Int, at now: Timestamp
    ) async throws -> UpdateResumption
    /// Ends those whose time is over.
    func endExpiredUpdates(at now: Timestamp, limit: Int) async throws -> [EndedUpdate]
    /// Forgets the oldest of an app's ended updates beyond a number, and those that ended before a moment, as far as nothing of them is
    /// left to do. Answers whether nothing is left to forget.
    ///
    /// - Parameter retention: Nil forgets only what is beyond the number.
    func forgetUpdates(_ limits: UpdateLimits, by retention: RetentionTime?, limit: Int) async throws -> Bool
    /// How many completions of an update are in each state.
    func counts(of update: UpdateSerial) async throws -> [CompletionMachine.State: Int]
    /// A page of an update's completions, in the order of their bindings.
    func completions(
        of update: UpdateSerial, in state: CompletionMachine.State?, after: CompletionKey?, limit: Int
    ) async throws -> [DeviceCompletion]
    /// Those of one device.
    func completions(of update: UpdateSerial, at device: DeviceID) async throws -> [Completion]

    // MARK: Bindings

    /// The binding of a device with its present user and a profile; made where there is none.
    func binding(of device: DeviceSerial, profile: String, at now: Timestamp) async throws -> UpdateBinding?
    /// The binding that a device came with last, unless it ended.
    func presentBinding(of device: DeviceSerial) async throws -> UpdateBinding?
    /// Writes what a device says of itself, if its revision is the one it was: with it every update is held against it anew.
    ///
    /// - Parameter hasOtherKinds: Than before: what it knows no more is unsupported and is taken out of the inbox, and what it did not know
    ///   before is due.
    func change(_ binding: UpdateBinding, hasOtherKinds: Bool, at now: Timestamp) async throws -> BindingChange?
    func bindingCount(of app: AppSerial) async throws -> Int
    /// Those of an app.
    func bindings(of app: AppSerial, after: BindingSerial, limit: Int) async throws -> [AppBinding]
    /// Forgets where devices were before a moment.
    func forgetLocations(before moment: Timestamp, limit: Int) async throws
    /// Bindings that ended, and of which something is left.
    func bindingsToRelease(limit: Int) async throws -> [ReleasedBinding]
    /// Some of a binding's completions that are not final are gone: answers what of them is in the inbox. Nil when there is none left.
    func release(_ binding: BindingSerial, limit: Int, at now: Timestamp) async throws -> [MessageID]?

    /// Finds a device that polls, and whether anything is for it: in one visit. Nil where there is none, or it is not let in.
    func poll(
        of device: DeviceID, at now: Timestamp, decide: @escaping @Sendable (Device) -> Arrival.Decision
    ) async throws -> PollVisit?

    // MARK: Waking

    /// Live updates for which sleeping devices are to be woken still: of each app the first.
    func wakingUpdates(limit: Int) async throws -> [WakingUpdate]
    /// Those of an app whose devices can be pushed to.
    func bindingsToWake(of app: AppSerial, after: BindingSerial, limit: Int) async throws -> [AppBinding]
    /// The devices of bindings up to there were woken; nil: all.
    func woke(_ update: UpdateSerial, to place: BindingSerial?) async throws

    // MARK: Completions

    /// A binding's completions of these updates: the last entry of each.
    func completions(of binding: BindingSerial, _ updates: [UpdateSerial]) async throws -> [Completion]
    /// The same of all updates that live, from one on, ascending.
    func lastOfLive(of binding: BindingSerial, from first: UpdateSerial) async throws -> [Completion]
    /// A binding's completions that are not final.
    func unfinished(of binding: BindingSerial) async throws -> [Completion]
    /// Writes how far a binding was held against the log, with completions that have no envelope, as far as their updates live, if its
    /// revision is still the one; answers whether it is.
    ///
    /// - Parameter isFull: What comes after the place had no room.
    func held(
        _ binding: BindingSerial, revision: Int64, to place: HeldTo, isFull: Bool, adding completions: [Completion],
        at now: Timestamp
    ) async throws -> Bool
    /// Writes what a device says of updates, and how far it received, where it says so.
    func report(
        _ results: [ReportedResult], receivedTo place: ReceivedTo?, of binding: BindingSerial, at now: Timestamp
    ) async throws -> ReportAnswers
    /// All that a binding received and did not finish is due now: it lost what it had.
    ///
    /// - Parameter needsResync: It was further than it is.
    func offerAgain(to binding: BindingSerial, needsResync: Bool, at now: Timestamp) async throws
    /// A binding's completions of content that its device does not have.
    func unreceivedContent(of binding: BindingSerial) async throws -> UnreceivedContent
    /// Both of these: what a binding's device is to be given beside.
    func standing(
        of binding: BindingSerial, _ updates: [UpdateSerial]
    ) async throws -> (completions: [Completion], unreceived: UnreceivedContent)
    /// What of completions is in inboxes.
    func envelopes(of completions: [CompletionKey]) async throws -> [MessageID]
    /// Later changes of content stand for completions, as far as the device does not have them, and take them out of the inbox. Answers
    /// what was taken out.
    func absorb(_ absorbed: [(CompletionKey, by: UpdateSerial)], at now: Timestamp) async throws -> [MessageID]
    /// Tells a binding to fetch everything, which stands for all content that its device does not have, and takes that out of the inbox.
    func resync(_ binding: BindingSerial, _ wish: ResyncWish, at now: Timestamp) async throws -> Resync
    /// What expired up to there is nothing to a binding.
    func saw(_ binding: BindingSerial, to place: UpdateSerial) async throws
    /// A binding of a revision left the audiences of updates. Completions that the device never received are forgotten; the others are
    /// marked, and end if they wait or are due (``CompletionMachine/left(at:)``). All are taken out of the inbox in the same
    /// transaction. Answers what was taken out.
    func left(
        _ completions: [CompletionKey], of binding: BindingSerial, revision: Int64, at now: Timestamp
    ) async throws -> [MessageID]
    /// A binding of a revision belongs to audiences again that it had left.
    func returned(
        _ completions: [CompletionKey], of binding: BindingSerial, revision: Int64, at now: Timestamp
    ) async throws
    /// A binding of a revision does not process the kinds of these, which were due.
    func unsupported(
        _ completions: [CompletionKey], of binding: BindingSerial, revision: Int64, at now: Timestamp
    ) async throws
    /// Those that are to be given again, of one binding where it is named, in the order of their moments.
    func dueCompletions(of binding: BindingSerial?, at now: Timestamp, limit: Int) async throws -> [DueCompletion]
    /// The inbox of a binding of a revision had no room for one: it is due later.
    func putOff(_ completion: CompletionKey, revision: Int64, until moment: Timestamp) async throws
    /// The clock was set back. A completion whose due time was set by the later clock waits as long from now on; no completion waits
    /// longer than its state allows (``CompletionMachine/longestWaitSeconds(in:)``). Answers whether these were all.
    ///
    /// - Parameter moment: Completions that are due by then stay as they are.
    func bringBackCompletions(dueAfter moment: Timestamp, at now: Timestamp, limit: Int) async throws -> Bool
    /// Completions of ended updates that are not final.
    func unfinishedOfEnded(limit: Int) async throws -> [EndedCompletion]
    /// Looks among the ended updates after a place for completions that are not final and that ``unfinishedOfEnded(limit:)`` does not find,
    /// and lets it find them. Answers where to go on; nil at the end.
    func findUnfinishedOfEnded(after place: UpdateSerial, limit: Int) async throws -> UpdateSerial?
    /// They come to an end, as far as they did not before.
    func endCompletions(_ ended: [(CompletionKey, CompletionMachine.State)], at now: Timestamp) async throws
    /// Puts back what is parked of some completions of an update, and notes it in the audit. Answers how many it was.
    func requeue(
        _ completions: [CompletionKey], at now: Timestamp, noting wish: (key: KeyID, update: UpdateID), of app: AppSerial
    ) async throws -> Int

    // MARK: The audit

    /// A page of an app's, from the latest on.
    func audit(of app: AppSerial, before number: Int64?, limit: Int) async throws -> [AuditEntry]
    func forgetAudit(before moment: Timestamp, beyond most: Int, limit: Int) async throws
}

/// What a store knows of a device that polls.
package struct PollVisit: Sendable {
    package var device: Device
    /// The one that the device came with last, of its present user; nil of a device that is to begin one.
    package var binding: UpdateBinding?
    /// What waits in its inbox; nil where that was not read, or is much.
    package var waiting: [WaitingName]?
    /// Whether the binding is to be given something again.
    package var isAnyDue: Bool

    package var isEmpty: Bool { waiting?.isEmpty == true && !isAnyDue }

    package init(
        device: Device, binding: UpdateBinding? = nil, waiting: [WaitingName]? = nil, isAnyDue: Bool = true
    ) {
        self.device = device
        self.binding = binding
        self.waiting = waiting
        self.isAnyDue = isAnyDue
    }

    /// So much of an inbox is looked at.
    package static let mostWaiting = 64
}

/// An envelope that waits, without what it says.
package struct WaitingName: Sendable {
    package var id: MessageID
    package var kind: EnvelopeKind

    package init(id: MessageID, kind: EnvelopeKind) {
        self.id = id
        self.kind = kind
    }
}

/// What became of what a device said of updates.
package struct ReportAnswers: Sendable {
    /// One for each result.
    package var answers: [ReportAnswer]
    /// Whether the binding is to be given something again now.
    package var isAnyDue: Bool

    package init(answers: [ReportAnswer], isAnyDue: Bool) {
        self.answers = answers
        self.isAnyDue = isAnyDue
    }
}

/// A binding as it was written.
package struct BindingChange: Sendable {
    package var binding: UpdateBinding
    /// What was taken out of the inbox in the same transaction.
    package var takenOut: [MessageID]

    package init(binding: UpdateBinding, takenOut: [MessageID]) {
        self.binding = binding
        self.takenOut = takenOut
    }
}

package struct UpdateWish: Sendable {
    package var proposed: UpdateID
    package var app: AppSerial
    /// Who wishes it.
    package var key: KeyID
    package var definition: Update.Definition
    /// What devices are given.
    package var body: [UInt8]
    /// That an index finds its audience, or that it has none.
    package var isIndexed: Bool
    /// The hash of the `Idempotency-Key`, and that of the request.
    package var idempotency: (key: [UInt8], fingerprint: [UInt8])?
    package var limits: UpdateLimits

    package init(
        proposed: UpdateID, app: AppSerial, key: KeyID, definition: Update.Definition, body: [UInt8], isIndexed: Bool,
        idempotency: (key: [UInt8], fingerprint: [UInt8])?, limits: UpdateLimits
    ) {
        self.proposed = proposed
        self.app = app
        self.key = key
        self.definition = definition
        self.body = body
        self.isIndexed = isIndexed
        self.idempotency = idempotency
        self.limits = limits
    }
}

package struct UnreceivedContent: Sendable {
    package var completions: [Completion]
    /// One that says to fetch everything: it stands for all that comes before the device has it.
    package var resync: UpdateSerial?

    package init(completions: [Completion], resync: UpdateSerial?) {
        self.completions = completions
        self.resync = resync
    }
}

/// The update by which an app's devices are told to fetch everything, where it is not there yet.
package struct ResyncWish: Sendable {
    package var proposed: UpdateID
    package var body: [UInt8]

    package init(proposed: UpdateID, body: [UInt8]) {
        self.proposed = proposed
        self.body = body
    }
}

package struct Resync: Sendable {
    package var update: UpdateSerial
    /// What it stands for, and was taken out of the inbox.
    package var absorbed: [MessageID]

    package init(update: UpdateSerial, absorbed: [MessageID]) {
        self.update = update
        self.absorbed = absorbed
    }
}

package enum UpdateResumption: Sendable {
    case resumed
    /// The update ended, or another request resumed it.
    case notPaused
    case tooManyAudienceBytes
}

package enum UpdatePut: Sendable {
    /// With the one that it superseded, and the last before it that lives.
    case made(Update, superseded: UpdateSerial?, previous: UpdateSerial)
    /// The `Idempotency-Key` was used before, by the same request.
    case repeated(Update)
    case keyReused
    case tooMany
    case tooManyUnindexed
    case tooManyAudienceBytes
    /// There is none to be superseded, or it lives no more.
    case supersededUnknown
    case appGone
}

package struct EndedUpdate: Equatable, Sendable {
    package var app: AppSerial
    package var update: UpdateSerial

    package init(app: AppSerial, update: UpdateSerial) {
        self.app = app
        self.update = update
    }
}

/// A completion with the device that it is of.
package struct DeviceCompletion: Sendable {
    package var device: DeviceID
    package var user: UserID?
    package var profile: String
    package var completion: Completion

    package init(device: DeviceID, user: UserID?, profile: String, completion: Completion) {
        self.device = device
        self.user = user
        self.profile = profile
        self.completion = completion
    }
}

package struct WakingUpdate: Sendable {
    package var update: Update
    package var app: AppID
    package var wokenTo: BindingSerial

    package init(update: Update, app: AppID, wokenTo: BindingSerial) {
        self.update = update
        self.app = app
        self.wokenTo = wokenTo
    }
}

package struct AppBinding: Sendable {
    package var binding: UpdateBinding
    package var device: DeviceID

    package init(binding: UpdateBinding, device: DeviceID) {
        self.binding = binding
        self.device = device
    }
}

package struct ReleasedBinding: Equatable, Sendable {
    package var binding: BindingSerial
    package var device: DeviceSerial

    package init(binding: BindingSerial, device: DeviceSerial) {
        self.binding = binding
        self.device = device
    }
}

/// What a device says of an update.
package struct ReportedResult: Equatable, Sendable {
    package var update: UpdateID
    package var entry: Int
    /// Which time it was given; nil: the last.
    package var attempt: Int?
    package var result: UpdateResult

    package init(update: UpdateID, entry: Int, attempt: Int?, result: UpdateResult) {
        self.update = update
        self.entry = entry
        self.attempt = attempt
        self.result = result
    }
}

package enum ReportAnswer: Equatable, Sendable {
    /// Written; what of it is in the inbox still is to be taken out.
    case taken(MessageID?)
    /// It came to an end before.
    case late
    /// The binding has no such update.
    case unknown
}

/// A completion that is to be given again, with all that an envelope of it needs.
package struct DueCompletion: Sendable {
    package var completion: Completion
    package var update: Update
    package var binding: UpdateBinding
    package var device: DeviceID
    package var app: AppID

    package init(completion: Completion, update: Update, binding: UpdateBinding, device: DeviceID, app: AppID) {
        self.completion = completion
        self.update = update
        self.binding = binding
        self.device = device
        self.app = app
    }
}

/// A completion whose update ended before it did.
package struct EndedCompletion: Sendable {
    package var completion: Completion
    package var device: DeviceSerial
    package var app: AppSerial
    package var origin: Origin
    package var status: Update.Status
    package var isContent: Bool
    /// What of it is in the inbox.
    package var envelope: MessageID?

    package init(
        completion: Completion, device: DeviceSerial, app: AppSerial, origin: Origin, status: Update.Status, isContent: Bool
    ) {
        self.completion = completion
        self.device = device
        self.app = app
        self.origin = origin
        self.status = status
        self.isContent = isContent
    }
}
