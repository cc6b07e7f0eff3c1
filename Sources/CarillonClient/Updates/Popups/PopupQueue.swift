import Synchronization

/// The popups that wait for their user, and the one that is shown.
///
/// One is shown at a time: of those that wait the gravest, and among equals the one that came first; none is taken away for a graver one.
/// Attachments are downloaded while their popups wait, a few at a time.
struct PopupQueue {
    enum Download: Equatable {
        case none
        case waiting
        case running(Double)
        case ready
        case failed([String])
    }

    enum Action: Equatable {
        case show(UpdateKey, PushUpdate.Popup, PopupDialog.Button)
        case dismiss(UpdateKey)
        case download(UpdateKey, PushUpdate.Attachment)
        /// To be made durable; then ``PopupQueue/settled(_:)``.
        case confirm(UpdateKey, opens: PushUpdate.Attachment?)
        /// The same, of a popup whose attachment is not there.
        case giveUp(UpdateKey, errors: [String])
    }

    private struct Item {
        var key: UpdateKey
        var popup: PushUpdate.Popup
        var download: Download
        var isPressed = false

        var button: PopupDialog.Button {
            switch download {
            case .none: .ok
            case .waiting: .waiting
            case .running(let part): .downloading(part)
            case .ready: .detail
            case .failed: .close
            }
        }
    }

    /// In the order in which they came.
    private var items: [Item] = []
    private var shown: UpdateKey?
    private var downloads: Set<UpdateKey> = []

    static let mostDownloads = 2
    /// A step of progress that is worth another look.
    static let progressStep = 0.01

    var isEmpty: Bool { items.isEmpty }

    mutating func added(_ key: UpdateKey, _ popup: PushUpdate.Popup) -> [Action] {
        guard !items.contains(where: { $0.key == key }) else { return [] }
        items.append(Item(key: key, popup: popup, download: popup.attachment == nil ? .none : .waiting))
        return startDownloads() + showNext()
    }

    /// An update was taken back, or is somebody else's.
    mutating func removed(_ key: UpdateKey) -> [Action] {
        guard let place = place(of: key) else { return [] }
        items.remove(at: place)
        downloads.remove(key)
        guard shown == key else { return startDownloads() }
        shown = nil
        return [.dismiss(key)] + startDownloads() + showNext()
    }

    mutating func removedAll() -> [Action] {
        defer { self = PopupQueue() }
        return shown.map { [.dismiss($0)] } ?? []
    }

    mutating func pressed(_ key: UpdateKey) -> [Action] {
        guard shown == key, let place = place(of: key), !items[place].isPressed, items[place].button.isEnabled else {
            return []
        }
        items[place].isPressed = true
        switch items[place].download {
        case .failed(let errors): return [.giveUp(key, errors: errors)]
        case .ready: return [.confirm(key, opens: items[place].popup.attachment)]
        case .none, .waiting, .running: return [.confirm(key, opens: nil)]
        }
    }

    /// What a press meant is durable.
    mutating func settled(_ key: UpdateKey) -> [Action] { removed(key) }

    /// What a press meant could not be stored: it can be pressed again.
    mutating func unsettled(_ key: UpdateKey) {
        if let place = place(of: key) { items[place].isPressed = false }
    }

    // MARK: Downloads

    mutating func progressed(_ key: UpdateKey, to part: Double) -> [Action] {
        guard let place = place(of: key), case .running(let before) = items[place].download else { return [] }
        let part = min(max(part.isNaN ? 0 : part, before), 1)
        guard part - before >= Self.progressStep else { return [] }
        return change(place, to: .running(part))
    }

    mutating func downloaded(_ key: UpdateKey, errors: [String]? = nil) -> [Action] {
        downloads.remove(key)
        guard let place = place(of: key) else { return startDownloads() }
        return change(place, to: errors.map { .failed($0) } ?? .ready) + startDownloads()
    }

    private mutating func startDownloads() -> [Action] {
        var actions: [Action] = []
        for place in items.indices where items[place].download == .waiting && downloads.count < Self.mostDownloads {
            guard let attachment = items[place].popup.attachment else { continue }
            downloads.insert(items[place].key)
            actions.append(.download(items[place].key, attachment))
            actions += change(place, to: .running(0))
        }
        return actions
    }

    private mutating func change(_ place: Int, to download: Download) -> [Action] {
        items[place].download = download
        return shown == items[place].key ? [show(items[place])] : []
    }

    // MARK: The one that is shown

    private mutating func showNext() -> [Action] {
        guard shown == nil, let next = items.min(by: { $0.popup.style.gravity < $1.popup.style.gravity }) else { return [] }
        shown = next.key
        return [show(next)]
    }

    private func show(_ item: Item) -> Action { .show(item.key, item.popup, item.button) }

    private func place(of key: UpdateKey) -> Int? { items.firstIndex { $0.key == key } }
}

extension PushUpdate.Popup.Style {
    /// The smaller, the sooner.
    fileprivate var gravity: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

/// Lets no more than a hundred steps of one download through, however often it reports one.
final class ProgressSteps: Sendable {
    private let last = Mutex(0.0)

    func isNew(_ part: Double) -> Bool {
        last.withLock { last in
            guard part >= last + PopupQueue.progressStep else { return false }
            last = part
            return true
        }
    }
}
