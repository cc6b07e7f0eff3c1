/// Decides which outgoing calls get the next slots. The slots are shared by app, by kind of work, by device and by host.
///
/// A call that was begun cannot be cancelled, and a call without an answer uses its slot for many seconds. So the limits apply to
/// the calls that begin:
///
/// - An app may have three times as many calls in progress as there are free slots. One app alone gets three quarters of the
///   slots, two apps get three sevenths each, and the next app always finds a free slot.
/// - A kind of work may have three quarters of the slots.
/// - A device may have a sixteenth of the slots. A host may also have a sixteenth, for all its ports.
/// - A host and port is called by one call at a time.
/// - Calls to peers *on trial* (``EndpointHealth``) have half of all slots, shared by the same rules. So calls to reliable peers
///   do not wait for any number of unreliable addresses.
///
/// Of the calls that may begin, the first is the one whose app, kind, device and host have the fewest calls in progress. Of equal
/// calls, the first is the one that has waited the longest since the last turn of its queue.
package struct WorkSlots: Sendable {
    /// The groups in which calls are counted.
    private enum CallGroup: Hashable {
        case everyone
        case app(AppSerial)
        case kind(WorkKind)
        case device(DeviceSerial)
        case host(String)
        case peer(String)
    }

    private struct Count {
        var all = 0
        var onTrial = 0
    }

    private let slots: Int
    private let narrow: Int
    private var counts: [CallGroup: Count] = [:]

    /// - Parameter slots: The maximum number of calls in progress.
    package init(slots: Int) {
        self.slots = max(1, slots)
        narrow = max(1, slots / 16)
    }

    package var underWay: Int { count(.everyone).all }

    /// Returns the devices, hosts and peers for which no further call may begin now. The store leaves out their work, so that a
    /// party with a thousand waiting calls does not hide the calls of others.
    package func busy(onTrial: Bool) -> BusyPeers {
        var busy = BusyPeers()
        for (group, count) in counts where isFull(group, count, onTrial: onTrial) {
            switch group {
            case .device(let device): busy.devices.insert(device)
            case .host(let host): busy.hosts.insert(host)
            case .peer(let peer): busy.peers.insert(peer)
            case .everyone, .app, .kind: break
            }
        }
        return busy
    }

    /// Returns the candidates that begin now, at most `freeSlots`. They count as in progress from now on.
    package mutating func begin(_ candidates: [DueWork], freeSlots: Int) -> [DueWork] {
        // The best candidate is last. Counts only grow here, so an order never improves: a candidate that has fallen behind is
        // moved to its new place, and a candidate that cannot begin now cannot begin later in this round.
        var queue = candidates.filter(mayBegin).map { (order: order($0), call: $0) }.sorted { $1.order < $0.order }
        var begun: [DueWork] = []
        while begun.count < freeSlots, let (earlier, call) = queue.popLast() {
            guard mayBegin(call) else { continue }
            let order = order(call)
            if order == earlier {
                change(call, by: 1)
                begun.append(call)
            } else {
                let place = queue.partitioningIndex { $0.order < order }
                queue.insert((order, call), at: place)
            }
        }
        return begun
    }

    /// The call ended, or was not begun after all.
    package mutating func ended(_ call: DueWork) { change(call, by: -1) }

    private func mayBegin(_ call: DueWork) -> Bool {
        func isOpen(_ group: CallGroup) -> Bool { !isFull(group, count(group), onTrial: call.isOnTrial) }
        // The most restrictive limits come first, and no array is made, because this runs for each candidate.
        return isOpen(.device(call.device)) && isOpen(.everyone) && isOpen(.app(call.app)) && isOpen(.kind(call.kind))
            && isOpen(.peer(call.peer)) && isOpen(.host(call.host))
    }

    private func isFull(_ group: CallGroup, _ count: Count, onTrial: Bool) -> Bool {
        count.all >= bound(of: group, slots: slots, taken: underWay, narrow: narrow)
            || onTrial
                && count.onTrial
                    >= bound(
                        of: group, slots: max(1, slots / 2), taken: self.count(.everyone).onTrial,
                        narrow: max(1, narrow / 2))
    }

    private func bound(of group: CallGroup, slots: Int, taken: Int, narrow: Int) -> Int {
        switch group {
        case .everyone: slots
        case .app: 3 * (slots - taken)
        case .kind: max(1, slots * 3 / 4)
        case .device, .host: narrow
        case .peer: 1
        }
    }

    private func order(_ call: DueWork) -> Order {
        Order(
            ofApp: count(.app(call.app)).all, ofKind: count(.kind(call.kind)).all,
            ofDevice: count(.device(call.device)).all, ofHost: count(.host(call.host)).all,
            since: max(call.readyAt, call.servedAt), serial: call.serial)
    }

    private struct Order: Comparable {
        var ofApp: Int
        var ofKind: Int
        var ofDevice: Int
        var ofHost: Int
        var since: Timestamp
        var serial: Int64

        static func < (left: Order, right: Order) -> Bool {
            if left.ofApp != right.ofApp { return left.ofApp < right.ofApp }
            if left.ofKind != right.ofKind { return left.ofKind < right.ofKind }
            if left.ofDevice != right.ofDevice { return left.ofDevice < right.ofDevice }
            if left.ofHost != right.ofHost { return left.ofHost < right.ofHost }
            return left.since == right.since ? left.serial < right.serial : left.since < right.since
        }
    }

    private func groups(of call: DueWork) -> [CallGroup] {
        [.everyone, .app(call.app), .kind(call.kind), .device(call.device), .host(call.host), .peer(call.peer)]
    }

    private func count(_ group: CallGroup) -> Count { counts[group] ?? Count() }

    private mutating func change(_ call: DueWork, by difference: Int) {
        for group in groups(of: call) {
            var count = count(group)
            count.all += difference
            if call.isOnTrial { count.onTrial += difference }
            precondition(count.all >= 0 && count.onTrial >= 0, "A call must begin before it ends.")
            counts[group] = count.all == 0 ? nil : count
        }
    }
}

extension Array {
    /// Returns the first index that meets the condition, if all later indices meet it, too.
    fileprivate func partitioningIndex(where isBehind: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if isBehind(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
