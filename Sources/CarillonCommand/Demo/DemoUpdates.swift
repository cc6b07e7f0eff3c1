import CarillonBasics
import CarillonClient
import CarillonCore
import CarillonServer
import CarillonWire
import Foundation
import Synchronization

/// The scenario of audience updates: an update for the region "north" reaches a phone there, which reports the result.
struct DemoUpdates {
    let client: PushClient
    let domain: HomeDomain
    let app: AppID
    let say: @Sendable (String) -> Void

    private static var rules: ParameterRules {
        get throws { try ParameterRules(["parameters": ["region": .string("string")]]) }
    }

    func notify() async throws {
        guard let serial = try await domain.apps.serial(of: app) else { return }
        try await domain.updates.setRules(try Self.rules, of: serial)
        let content = DemoContent(say: say)
        client.updates.settings = .init(needsUser: false, polling: .long(.seconds(25)))
        client.updates.process(content: content, presenter: content, parameters: { ["region": .text("north")] })
        say(
            "The phone polls, and reports that it is in the north. The backend publishes an update for the north, and one for the south."
        )
        let key = try await domain.keys.createKey(role: .sender, app: app, name: "demo").key.id
        var updates: [Update] = []
        for region in ["north", "south"] {
            let definition = Update.Definition(
                kind: .content, payload: Array(#"{"action":"refresh","object":"pump-7"}"#.utf8),
                audience: "region == '\(region)'", mode: .once, ttlSeconds: 3600, orderKey: nil, supersedes: nil)
            updates.append(try await domain.updates.publish(definition, of: serial, by: key).update)
        }
        while try await domain.updates.counts(of: updates[0])[.done] ?? 0 == 0 {
            try await Task.sleep(for: .milliseconds(50))
        }
        for (update, region) in zip(updates, ["north", "south"]) {
            let counts = try await domain.updates.counts(of: update).map { "\($0.value) \($0.key.name)" }.sorted()
            say("  for the \(region): \(counts.isEmpty ? "no device" : counts.joined(separator: ", "))")
            try await domain.updates.withdraw(update.id, of: serial, by: key)
        }
    }
}

/// An app's content in memory, and its user interface, which prints a line for each event.
private final class DemoContent: CarillonClient.ContentStore, UpdatePresenter {
    private let applied = Mutex<Set<UpdateEffect>>([])
    private let say: @Sendable (String) -> Void

    init(say: @escaping @Sendable (String) -> Void) { self.say = say }

    func mode() async -> SyncMode { .automatic }
    func setMode(_ mode: SyncMode) async {}
    func uncommittedChanges() async -> UncommittedChanges { .init(isEmpty: true, revision: 0) }
    func commit() async -> CommitOutcome { .committed }
    func hasApplied(_ effect: UpdateEffect) async -> Bool { applied.withLock { $0.contains(effect) } }

    func apply(_ content: PushUpdate.Content, as effect: UpdateEffect) async {
        if case .refresh(let object, _, _) = content { say("  the app fetches \(object) again") }
        _ = applied.withLock { $0.insert(effect) }
    }

    func replaceDefinitions(unlessEditedSince revision: Int64, as effect: UpdateEffect) async -> DefinitionsOutcome {
        _ = applied.withLock { $0.insert(effect) }
        return .replaced
    }

    func cancelPreparing() async {}
    func download(_ attachment: PushUpdate.Attachment, progress: @escaping @Sendable (Double) -> Void) async {}
    func events() async -> AsyncStream<ContentEvent> { AsyncStream.makeStream().stream }

    func received(_ counts: [String: Int]) async {
        say("  the phone received \(counts.values.reduce(0, +)) update")
    }
    func failed(_ failure: UpdateFailure) async { say("  \(failure.message)") }
    func conflict(_ update: PushUpdate) async {}
    func mayCommit(before update: PushUpdate, deadline: Date) async -> CommitConsent { .given }
    func notify(_ popup: PushUpdate.Popup) async {}
    func show(_ dialog: PopupDialog) async {}
    func dismiss(_ dialog: PopupDialog.ID) async {}
    func open(_ attachment: PushUpdate.Attachment) async {}
}
