import Synchronization

/// The popups that wait for the user, and the one that is shown.
///
/// One popup is shown at a time: the most severe of the waiting ones, and among equals the first to arrive. A shown popup is not
/// replaced by a more severe one. Attachments are downloaded while their popups wait, up to two at a time.
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
        /// Store the result of the popup, then call ``PopupQueue/resultStored(_:)``.
        case confirm(UpdateKey, opens: PushUpdate.Attachment?)
        /// The same for a popup whose attachment could not be downloaded.
        case fail(UpdateKey, errors: [String])
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

    /// In the order of arrival.
    private var items: [Item] = []
    private var shown: UpdateKey?
    private var downloads: Set<UpdateKey> = []

    static let mostDownloads = 2
    /// The smallest step of progress that is shown.
    static let progressStep = 0.01

    var isEmpty: Bool { items.isEmpty }

    mutating func added(_ key: UpdateKey, _ popup: PushUpdate.Popup) -> [Action] {
        guard !items.contains(where: { $0.key == key }) else { return [] }
        items.append(Item(key: key, popup: popup, download: popup.attachment == nil ? .none : .waiting))
        return startDownloads() + showNext()
    }

    /// Removes a popup whose update was withdrawn, or has another owner.
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
        case .failed(let errors): return [.fail(key, errors: errors)]
        case .ready: return [.confirm(key, opens: items[place].popup.attachment)]
        case .none, .waiting, .running: return [.confirm(key, opens: nil)]
        }
    }

    /// The result of the press is durable.
    mutating func resultStored(_ key: UpdateKey) -> [Action] { removed(key) }

    /// The result of the press could not be stored: the button can be pressed again.
    mutating func resultNotStored(_ key: UpdateKey) {
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

    // MARK: The present dialog

    private mutating func showNext() -> [Action] {
        guard shown == nil, let next = items.min(by: { $0.popup.style.gravity < $1.popup.style.gravity }) else { return [] }
        shown = next.key
        return [show(next)]
    }

    private func show(_ item: Item) -> Action { .show(item.key, item.popup, item.button) }

    private func place(of key: UpdateKey) -> Int? { items.firstIndex { $0.key == key } }
}

extension PushUpdate.Popup.Style {
    /// A smaller number is shown sooner.
    fileprivate var gravity: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

/// Limits the steps of one download to 100, also if it reports more.
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
