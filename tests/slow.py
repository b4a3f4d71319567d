"""Tests that cost more than three quarters of a second of CPU: `make quick` leaves them out, `make test` does not.

Measured, not felt: `make test` prints its slowest thirty. A name that is no test any more fails tests/house.
"""

from __future__ import annotations

SLOW = {
    "contract/test_accounts.py": {
        "test_guesses_are_throttled_for_an_account_and_for_an_address_in_all_processes",
        "test_of_a_hundred_guesses_at_once_ten_are_looked_at",
    },
    "contract/test_api_hostile.py": {
        "test_a_body_that_is_no_object_of_ours_is_refused",
        "test_no_value_of_any_field_breaks_a_route",
    },
    "contract/test_api_jobs.py": {"test_each_of_the_49_pairs_is_taken_or_refused_over_http_as_the_document_says"},
    "contract/test_api_managing.py": {"test_two_servers_on_one_database_agree"},
    "contract/test_api_plans.py": {"test_no_route_reads_a_large_table_from_end_to_end"},
    "contract/test_api_schema.py": {
        "test_every_route_is_in_the_document",
        "test_whatever_is_asked_the_answer_is_as_promised",
    },
    "contract/test_api_stateful.py": {"test_no_order_of_requests_breaks_the_server"},
    "contract/test_api_together.py": {
        "test_a_source_that_two_make_at_once_is_made_once",
        "test_changes_from_two_servers_at_once_are_taken_or_refused_and_never_break",
    },
    "contract/test_api_totals.py": {"test_a_crawl_is_asked_for_among_many_captures_of_an_address"},
    "contract/test_changes_compute.py": {
        "test_an_outage_is_an_error_and_not_a_rewrite",
        "test_captures_are_told_apart",
    },
    "contract/test_changes_plans.py": {"test_every_question_seeks"},
    "contract/test_changes_site.py": {"test_a_body_that_broke_off_is_no_change_of_the_page"},
    "contract/test_changes_together.py": {"test_late_captures_before_a_long_outage_are_written_in_short_transactions"},
    "contract/test_cleaning.py": {
        "test_what_is_young_or_not_indexed_or_not_a_tools_is_left_alone_and_so_is_a_disk_with_room"
    },
    "contract/test_db_parity.py": {
        "test_a_migration_that_is_killed_has_changed_nothing_and_runs_again",
        "test_migrations_are_undone_and_run_again_and_rows_stay",
        "test_what_an_older_extraction_did_not_read_is_not_known",
    },
    "contract/test_editions_archive.py": {"test_readers_see_a_summary_and_files_without_the_inner_life"},
    "contract/test_editions_campaign.py": {
        "test_a_seed_that_is_not_there_is_not_covered_however_it_is_written_and_however_many_there_are"
    },
    "contract/test_exports_days.py": {"test_an_index_run_notes_from_when_to_when_a_file_is"},
    "contract/test_feeds_polling.py": {"test_no_question_of_a_poll_walks_all_items"},
    "contract/test_frontier_machine.py": {"test_no_attempt_settles_twice_and_none_is_lost"},
    "contract/test_frontier_together.py": {"test_workers_never_share_a_domain_and_settle_everything_once"},
    "contract/test_index_plans.py": {"test_no_write_of_the_index_holds_the_database_for_long"},
    "contract/test_index_rows.py": {
        "test_a_file_reads_no_more_however_many_revisits_wait_for_originals_that_never_come"
    },
    "contract/test_jobs_history.py": {"test_history_is_pruned_to_the_newest_hundred"},
    "contract/test_jobs_listing.py": {
        "test_a_page_is_found_by_an_index_without_sorting_and_a_newest_run_by_one_seek",
        "test_logs_and_events_are_followed_by_their_indexes",
    },
    "contract/test_jobs_locks.py": {"test_the_source_is_locked_before_the_job"},
    "contract/test_jobs_plans.py": {"test_a_question_of_the_scheduler_goes_by_its_index"},
    "contract/test_jobs_store.py": {
        "test_every_pair_of_states_is_a_step_or_a_conflict_that_changes_nothing",
        "test_what_the_document_forbids_is_a_conflict",
    },
    "contract/test_linked_hosts.py": {
        "test_one_file_adds_the_most_frequent_pairs_only",
        "test_one_site_makes_no_more_rows_than_it_may",
    },
    "contract/test_near_duplicates.py": {"test_copies_are_told_from_pages_that_only_look_alike"},
    "contract/test_noise.py": {"test_of_a_fixed_set_nothing_but_noise_is_taken_for_it_and_nearly_all_of_it"},
    "contract/test_noise_doubt.py": {"test_an_update_puts_what_was_queued_for_whole_files_last"},
    "contract/test_one_reading.py": {"test_status_api_and_edition_say_of_a_run_what_its_row_and_the_table_say"},
    "contract/test_one_table.py": {
        "test_a_row_that_is_changed_is_changed_for_every_reader",
        "test_a_row_that_is_deleted_is_gone_for_every_reader",
    },
    "contract/test_page_signals.py": {
        "test_a_question_looks_words_up_and_walks_no_table",
        "test_what_was_withdrawn_is_hidden_at_once",
    },
    "contract/test_replay_web.py": {"test_a_range_of_a_large_page_is_one_of_the_rewritten_page"},
    "contract/test_seeding.py": {
        "test_seeds_come_batch_by_batch_and_a_second_start_adds_the_rest",
        "test_the_first_batch_costs_as_much_however_many_follow",
    },
    "contract/test_withdrawals.py": {
        "test_a_withdrawal_covers_every_spelling_that_is_known_after_a_step_back_to_the_older_schema"
    },
    "house/test_patterns.py": {
        "test_a_slow_pattern_is_found",
        "test_every_regular_expression_is_linear",
    },
    "unit/api/test_access.py": {"test_every_route_answers_every_role_and_every_way_of_signing_in"},
    "unit/api/test_bodies.py": {"test_each_byte_of_hostile_json_is_looked_at_once"},
    "unit/api/test_errors.py": {"test_a_damaged_database_is_told_without_its_place_and_no_fault_of_the_program"},
    "unit/api/test_headers.py": {"test_a_page_of_ours_may_load_its_own_files_and_run_nothing_inline"},
    "unit/api/test_origins.py": {
        "test_admin_routes_are_shared_with_nobody",
        "test_without_a_list_no_page_of_another_origin_reads_anything",
    },
    "unit/api/test_rates.py": {
        "test_each_kind_of_route_has_its_limit",
        "test_guessing_the_admin_token_is_slow",
        "test_monitors_are_never_limited",
    },
    "unit/api/test_roles.py": {
        "test_a_public_route_asks_nobody_who_they_are",
        "test_a_strict_environment_without_a_token_lets_nobody_in",
        "test_admin_routes_are_shut_without_the_token_and_with_a_wrong_one",
        "test_admin_routes_open_with_the_token_in_either_header",
        "test_no_reading_changes_anything",
        "test_without_a_token_a_server_behind_a_proxy_lets_nobody_in",
        "test_without_a_token_nobody_else_is_let_in",
    },
    "unit/changes/test_compare.py": {
        "test_hostile_texts_do_not_take_long",
        "test_runs_cover_both_sides_in_order_and_say_the_truth",
    },
    "unit/cli/test_catalogue.py": {
        "test_a_misspelled_command_is_told_the_nearest",
        "test_every_command_that_a_message_names_exists",
        "test_every_option_of_the_documents_is_there",
    },
    "unit/cli/test_completion.py": {"test_the_words_come_from_the_commands_themselves"},
    "unit/cli/test_empty_archive.py": {"test_where_there_is_nothing_json_is_one_object_and_people_read_a_sentence"},
    "unit/cli/test_loading.py": {
        "test_a_command_that_reads_loads_little",
        "test_it_is_called_by_the_name_under_which_it_was_typed",
    },
    "unit/cli/test_status.py": {"test_a_crawl_that_no_process_works_on_is_not_watched_for_ever"},
    "unit/crawl/test_keywords.py": {"test_whatever_a_page_says_can_be_asked_for"},
    "unit/crawl/test_links.py": {"test_the_pace_of_discovering_domains_is_remembered_within_a_bound"},
    "unit/crawl/test_pending_results.py": {"test_no_commit_points_at_bytes_that_are_not_synced"},
    "unit/crawl/test_reading.py": {"test_a_sitemap_index_adds_no_more_sitemaps_than_the_crawl_may_have_pages"},
    "unit/crawl/test_robots_gate.py": {
        "test_a_host_that_another_process_holds_is_busy_and_not_unreachable",
        "test_parsed_robots_files_take_no_more_memory_than_they_may_however_many_hosts_send_large_ones",
    },
    "unit/editions/test_comparison.py": {
        "test_of_a_body_that_very_many_addresses_shared_only_so_many_are_held_to_be_paired"
    },
    "unit/editions/test_ledger.py": {"test_any_mix_gives_one_row_an_address_and_sums_that_agree"},
    "unit/exports/test_redaction.py": {"test_looking_for_gaps_holds_a_few_bytes_of_each_record"},
    "unit/exports/test_zipping.py": {"test_more_members_than_sixteen_bits_count"},
    "unit/fetch/test_client_hostile.py": {"test_a_body_below_the_minimum_rate_is_cut_long_before_the_deadline"},
    "unit/fetch/test_cookies.py": {"test_no_header_and_no_address_make_it_raise_or_break_a_line"},
    "unit/fetch/test_dns.py": {
        "test_a_silent_nameserver_does_not_cost_the_time_of_the_other",
        "test_a_slow_answer_is_taken_as_long_as_there_is_time_however_quick_others_were",
    },
    "unit/fetch/test_robots_rules.py": {
        "test_groups_and_noise_are_read_as_they_were_meant",
        "test_the_fast_matcher_decides_as_the_slow_one",
    },
    "unit/frontier/test_adding.py": {"test_rows_are_unique_sorted_and_the_best_claim_wins"},
    "unit/imports/test_signatures.py": {"test_a_command_that_meets_no_signature_loads_no_cryptography"},
    "unit/index/test_reading.py": {"test_bits_that_flip_are_noticed_wherever_they_are"},
    "unit/parse/test_feed.py": {"test_a_huge_feed_is_cut_where_the_limit_is"},
    "unit/parse/test_pathology.py": {"test_a_family_that_hurts_is_named"},
    "unit/parse/test_sitemap.py": {"test_fifty_thousand_pages_and_not_one_more"},
    "unit/replay/test_patterns.py": {"test_a_pattern_is_linear_whatever_the_text"},
    "unit/replay/test_rewriting.py": {
        "test_one_attribute_cannot_outlast_the_deadline",
        "test_twice_the_input_takes_about_twice_the_time",
    },
    "unit/search/test_browse.py": {
        "test_a_bounded_reading_shows_the_newest_and_says_that_it_is_not_all",
        "test_filters_leave_what_a_walk_over_all_captures_leaves",
    },
    "unit/search/test_budget.py": {
        "test_a_storm_of_unknown_words_is_answered_within_its_budget",
        "test_an_unknown_word_reads_no_more_of_a_large_vocabulary_than_of_a_small_one",
        "test_what_is_read_in_part_holds_nothing_wrong",
    },
    "unit/search/test_drain.py": {
        "test_a_drain_does_no_more_work_however_much_is_kept",
        "test_a_drain_that_is_told_to_stop_keeps_what_was_committed_and_repeats_the_rest",
        "test_a_first_drain_that_is_told_to_stop_leaves_nothing_behind_and_the_next_one_goes_on",
        "test_many_small_drains_are_merged_and_lose_nothing",
        "test_readers_and_a_writer_at_the_same_time",
    },
    "unit/search/test_golden.py": {
        "test_ranking_is_not_worse_than_it_was",
        "test_the_default_ranking_is_the_best_that_we_have",
    },
    "unit/search/test_stable_order.py": {"test_an_index_that_grew_in_steps_gives_the_order_of_one_made_at_once"},
    "unit/site/test_server.py": {"test_a_request_starts_when_it_arrives_even_if_the_site_is_busy"},
    "unit/sources/test_source_files.py": {
        "test_a_toml_that_goes_deep_is_refused_before_it_is_parsed",
        "test_whatever_is_written_is_read_back",
    },
    "unit/urls/test_links.py": {"test_ten_thousand_sites_and_links_leave_little_behind"},
    "unit/urls/test_scope.py": {"test_a_link_costs_the_same_however_many_directories_the_seeds_have"},
    "unit/warc/test_codings.py": {"test_damage_keeps_what_came_before"},
    "unit/warc/test_manifest.py": {"test_a_sealed_file_costs_a_line_and_not_the_whole_list"},
    "unit/warc/test_reader.py": {"test_a_long_member_can_be_left_while_it_is_read"},
    "unit/warc/test_record.py": {"test_a_head_of_folded_lines_is_read_in_linear_time"},
    "unit/warc/test_repair.py": {
        "test_a_file_cut_at_any_byte_keeps_every_whole_record",
        "test_whole_records_that_swell_do_not_use_up_the_patience_with_damage",
    },
    "unit/warc/test_verify.py": {
        "test_heads_of_thousands_of_fields_are_looked_at_in_linear_time",
        "test_no_flipped_bit_goes_undetected",
    },
    "unit/worker/test_start_weight.py": {"test_a_crawl_loads_only_what_it_needs"},
}
