import CarillonBasics

/// The content of the notification and its presentation.
extension APNsNotification {
    consuming func with(_ change: (inout NotificationFields) -> Void) -> APNsNotification {
        change(&fields)
        return self
    }

    /// Sets the title of the alert.
    public consuming func title(_ text: String) -> Self { with { $0.alert.title = .plain(text) } }

    /// Sets a title that the device looks up in the app's strings, with values for its placeholders.
    public consuming func localizedTitle(_ key: String, arguments: [String]? = nil) -> Self {
        with { $0.alert.title = .localized(key: key, arguments: arguments) }
    }

    /// Sets the line below the title.
    public consuming func subtitle(_ text: String) -> Self { with { $0.alert.subtitle = .plain(text) } }

    /// Sets a subtitle that the device looks up in the app's strings, with values for its placeholders.
    public consuming func localizedSubtitle(_ key: String, arguments: [String]? = nil) -> Self {
        with { $0.alert.subtitle = .localized(key: key, arguments: arguments) }
    }

    /// Sets the text of the alert.
    public consuming func body(_ text: String) -> Self { with { $0.alert.body = .plain(text) } }

    /// Sets a text that the device looks up in the app's strings, with values for its placeholders.
    public consuming func localizedBody(_ key: String, arguments: [String]? = nil) -> Self {
        with { $0.alert.body = .localized(key: key, arguments: arguments) }
    }

    /// Sets the image that is shown while the notification opens the app.
    public consuming func launchImage(_ name: String) -> Self { with { $0.alert.launchImage = name } }

    /// Sets the title of the alert's action button (legacy; Safari uses it).
    public consuming func action(_ title: String) -> Self { with { $0.alert.action = title } }

    /// Sets the key of the action button's title in the app's strings (legacy).
    public consuming func localizedAction(_ key: String) -> Self { with { $0.alert.actionKey = key } }

    /// Sets the text for this notification in the summary of a group, and the number of items that it counts as (legacy).
    public consuming func summary(argument: String, count: Int? = nil) -> Self {
        with {
            $0.alert.summaryArgument = argument
            $0.alert.summaryArgumentCount = count
        }
    }

    /// Sets the number on the app's icon; 0 removes it.
    public consuming func badge(_ number: Int) -> Self { with { $0.badge = number } }

    /// Leaves the number on the app's icon unchanged. This is the default.
    public consuming func noBadgeChange() -> Self { with { $0.badge = nil } }

    /// Sets the sound: a sound file of the app, or `default`.
    public consuming func sound(_ name: String) -> Self { with { $0.sound = SoundFields(name: name) } }

    /// Sets the sound of a critical alert, which is a dictionary in the payload.
    /// - Parameters:
    ///   - name: a sound file of the app, or `default`.
    ///   - volume: from 0 to 1; nil for the system's volume.
    public consuming func criticalSound(_ name: String = "default", volume: Double? = nil) -> Self {
        with { $0.sound = SoundFields(name: name, isDictionary: true, isCritical: true, volume: volume) }
    }

    /// Sets the thread, by which the device groups notifications.
    public consuming func threadID(_ id: String) -> Self { with { $0.threadID = id } }

    /// Sets the category, whose actions the notification offers.
    public consuming func category(_ name: String) -> Self { with { $0.category = name } }

    /// Wakes the app in the background as well. The priority does not change: it is 10 for an alert, unless ``priority(_:)``
    /// sets another one. For a push that shows nothing, use ``background``, whose priority is 5.
    public consuming func contentAvailable() -> Self { with { $0.isContentAvailable = true } }

    /// Undoes ``contentAvailable()``.
    public consuming func contentUnavailable() -> Self { with { $0.isContentAvailable = false } }

    /// Allows the app's notification service extension to change the notification before it is shown.
    public consuming func mutableContent(_ isMutable: Bool = true) -> Self { with { $0.isMutableContent = isMutable } }

    /// Sets the window that the system brings to the front.
    public consuming func targetContentID(_ id: String) -> Self { with { $0.targetContentID = id } }

    /// Sets how much the notification can interrupt the user.
    public consuming func interruptionLevel(_ level: APNsInterruptionLevel) -> Self {
        with { $0.interruptionLevel = level.rawValue }
    }

    /// Sets the rank of the notification in a summary, from 0 to 1. For a Live Activity, any number that orders activities is
    /// valid.
    public consuming func relevanceScore(_ score: Double) -> Self { with { $0.relevanceScore = score } }

    /// Sets the criteria by which a Focus filter of the app decides whether the notification is shown.
    public consuming func filterCriteria(_ criteria: String) -> Self { with { $0.filterCriteria = criteria } }

    /// Sets the values for the placeholders of a website's URL (Safari).
    public consuming func urlArguments(_ values: [String]) -> Self { with { $0.urlArguments = values } }

    /// Sets a custom key beside `aps`. The value is encoded by this call, with Foundation's defaults. A second value of the
    /// same key replaces the first.
    ///
    /// If a value cannot be encoded, sending the notification throws.
    public consuming func custom(_ key: String, _ value: some Encodable & Sendable) -> Self {
        do {
            return setting(NotificationFields.CustomField(key: key, value: try JSONFragment(encoding: value)))
        } catch {
            return setting(NotificationFields.CustomField(key: key, fault: EncodingFault.describe(error, of: value)))
        }
    }

    /// Sets a custom key whose value is JSON already. The JSON is added to the payload unchanged.
    ///
    /// If the text is not one JSON value, or has a number beyond the range of `Double`, sending the notification throws.
    public consuming func custom(_ key: String, json: String) -> Self {
        let bytes = Array(json.utf8)
        guard JSONFragment.holds(bytes) else {
            let fault = NumberOutOfRange(in: bytes, depth: JSONFragment.depth).map { "\($0.clause)." } ?? "it is not JSON."
            return setting(NotificationFields.CustomField(key: key, fault: fault))
        }
        return setting(NotificationFields.CustomField(key: key, value: JSONFragment(bytes: bytes)))
    }

    private consuming func setting(_ field: NotificationFields.CustomField) -> Self {
        with { fields in
            if let index = fields.custom.firstIndex(where: { $0.key == field.key }) {
                fields.custom[index] = field
            } else {
                fields.custom.append(field)
            }
        }
    }
}
